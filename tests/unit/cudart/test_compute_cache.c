/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of compiled code, by the table that NVRTC uses: what is found again, and what is not.
 */
#include "fake_driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPUTE_CACHE "da9151d33ae6cc41a5c04f26d533e328"

struct key;
typedef CUresult create_key(struct key **key, uint32_t kind, const void *source, size_t size,
                            const char *options, const char *host, const char *compiler,
                            uint32_t sm, uint32_t flags);

static char base[] = "/tmp/funnel-test-XXXXXX", folder[64];

static void *slot(unsigned index)
{
    return fake_table(COMPUTE_CACHE)[index];
}

static struct key *make_key(const char *source, const char *options, uint32_t kind)
{
    create_key *create = slot(1);
    struct key *key = NULL;

    assert_int_equal(
        create(&key, kind, source, strlen(source), options, "HOST64", "Aug 20 2025", 90, 0),
        CUDA_SUCCESS);
    return key;
}

static void destroy(struct key *key)
{
    CUresult (*destroy_key)(struct key *) = slot(2);

    assert_int_equal(destroy_key(key), CUDA_SUCCESS);
}

static CUresult add(const char *source, const char *data)
{
    CUresult (*add_data)(struct key *, uint32_t, const void *, uint32_t) = slot(4);
    struct key *key = make_key(source, "-arch=sm_90", 1);
    CUresult result = add_data(key, 0, data, (uint32_t)strlen(data));

    destroy(key);
    return result;
}

/* What is found, or "-". */
static const char *find_as(const char *source, const char *options, uint32_t kind)
{
    static char text[256];
    CUresult (*find_data)(struct key *, uint32_t, void **, uint32_t *) = slot(3);
    CUresult (*free_data)(void *) = slot(6);
    struct key *key = make_key(source, options, kind);
    uint32_t out[2] = {0, 77};
    void *data = NULL;
    CUresult result = find_data(key, 0, &data, out);

    assert_int_equal(out[1], 77);
    destroy(key);
    if (result != CUDA_SUCCESS)
        return "-";
    snprintf(text, sizeof(text), "%.*s", (int)out[0], (char *)data);
    assert_int_equal(free_data(data), CUDA_SUCCESS);
    return text;
}

static const char *find(const char *source)
{
    return find_as(source, "-arch=sm_90", 1);
}

/* ---- the folder ---- */

static int setup(void **state)
{
    strcpy(base + strlen(base) - 6, "XXXXXX");
    assert_non_null(mkdtemp(base));
    snprintf(folder, sizeof(folder), "%s/funnel-compiler", base);
    setenv("CUDA_CACHE_PATH", base, 1);
    unsetenv("CUDA_CACHE_DISABLE");
    unsetenv("CUDA_CACHE_MAXSIZE");
    return 0;
}

static int for_files(void (*visit)(const char *path))
{
    DIR *listing = opendir(folder);
    char path[512];
    int count = 0;

    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || entry->d_name[1] == '.'))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        count++;
        if (visit)
            visit(path);
    }
    if (listing)
        closedir(listing);
    return count;
}

static void delete_file(const char *path)
{
    unlink(path);
}

static int teardown(void **state)
{
    chmod(folder, 0700);
    for_files(delete_file);
    rmdir(folder);
    rmdir(base);
    return 0;
}

/* ---- tests ---- */

static void an_added_entry_is_found(void **state)
{
    assert_string_equal(find("source"), "-");
    assert_int_equal(for_files(NULL), 0);
    assert_int_equal(add("source", "code"), CUDA_SUCCESS);
    assert_string_equal(find("source"), "code");
    assert_int_equal(add("source", "other code"), CUDA_SUCCESS);
    assert_string_equal(find("source"), "other code");
    assert_int_equal(for_files(NULL), 1);
}

static void all_of_the_key_counts(void **state)
{
    add("source", "code");
    assert_string_equal(find("sourcf"), "-");
    assert_string_equal(find_as("source", "-arch=sm_90", 2), "-");
    assert_string_equal(find_as("source", "-arch=sm_80", 1), "-");
    assert_string_equal(find_as("source", NULL, 1), "-");
    assert_string_equal(find_as("source", "-arch=sm_90", 1), "code");
}

static void spoil(const char *path)
{
    struct stat status;
    int fd = open(path, O_WRONLY);

    assert_true(fd >= 0 && !fstat(fd, &status));
    assert_int_equal(pwrite(fd, "X", 1, status.st_size - 1), 1);
    close(fd);
}

static void cut(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size - 1), 0);
}

static void open_to_all(const char *path)
{
    chmod(path, 0644);
}

static void files_that_are_not_valid_go(void **state)
{
    void (*const harms[])(const char *path) = {spoil, cut, open_to_all};

    for (size_t i = 0; i < sizeof(harms) / sizeof(*harms); i++) {
        add("source", "code");
        for_files(harms[i]);
        assert_string_equal(find("source"), "-");
        assert_int_equal(for_files(NULL), 0);
    }
}

static void a_folder_that_others_may_enter_is_not_used(void **state)
{
    add("source", "code");
    chmod(folder, 0755);
    assert_string_equal(find("source"), "-");
    assert_int_equal(add("more", "code"), CUDA_ERROR_OPERATING_SYSTEM);
    chmod(folder, 0700);
    assert_string_equal(find("source"), "code");
}

static void use_long_ago(const char *path)
{
    const struct timespec times[2] = {{1000, 0}, {1000, 0}};

    utimensat(AT_FDCWD, path, times, 0);
}

static void the_least_recently_used_entry_makes_room(void **state)
{
    add("first", "1");
    add("second", "2");
    for_files(use_long_ago);
    assert_string_equal(find("first"), "1");
    setenv("CUDA_CACHE_MAXSIZE", "250", 1); /* two of them */
    assert_int_equal(add("third", "3"), CUDA_SUCCESS);
    assert_string_equal(find("first"), "1");
    assert_string_equal(find("second"), "-");
    assert_string_equal(find("third"), "3");
    setenv("CUDA_CACHE_MAXSIZE", "10", 1);
    assert_int_equal(add("fourth", "4"), CUDA_ERROR_OPERATING_SYSTEM);
    assert_string_equal(find("third"), "3");
}

static void the_cache_can_be_switched_off(void **state)
{
    create_key *create = slot(1);
    struct key *key;

    setenv("CUDA_CACHE_DISABLE", "1", 1);
    assert_int_equal(create(&key, 1, "s", 1, "", "", "", 90, 0), CUDA_ERROR_NOT_SUPPORTED);
    setenv("CUDA_CACHE_DISABLE", "0", 1);
    assert_int_equal(add("source", "code"), CUDA_SUCCESS);
}

static void wrong_arguments(void **state)
{
    create_key *create = slot(1);
    struct key *key;

    assert_int_equal(create(NULL, 1, "s", 1, "", "", "", 90, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(create(&key, 1, NULL, 1, "", "", "", 90, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(create(&key, 1, "s", SIZE_MAX, "", "", "", 90, 0), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_added_entry_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(all_of_the_key_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_are_not_valid_go, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_others_may_enter_is_not_used, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_least_recently_used_entry_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cache_can_be_switched_off, setup, teardown),
        cmocka_unit_test(wrong_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
