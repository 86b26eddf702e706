/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read again, and nothing else is: not what has changed, nor what is foreign. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "code_kernels.h"
#include "code_list.h"
#include "code_load_lock.h"

#define IMAGE_SIZE 5000u

struct fixture {
    char folder[64], path[80];
    struct code_directory directory;
    unsigned char image[IMAGE_SIZE];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    strcpy(fixture->folder, "/tmp/funnel-codecache-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof(fixture->path), "%s/cache/funnel", fixture->folder);
    assert_int_equal(code_directory_open(&fixture->directory, fixture->path, true), 0);
    for (unsigned i = 0; i < IMAGE_SIZE; i++)
        fixture->image[i] = (unsigned char)(i * 7);
    *state = fixture;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    code_directory_close(&fixture->directory);
    nftw(fixture->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

/* The entry of an image that begins with `number`. */
static struct code_entry entry_of(struct fixture *fixture, unsigned char number)
{
    fixture->image[0] = number;
    return (struct code_entry){
        .origin = {.driver_version = 13000, .compute_capability = 90, .owner = 1000},
        .image_size = IMAGE_SIZE,
        .image = fixture->image,
        .options_size = 4,
        .options = "abc",
    };
}

static void save(struct fixture *fixture, unsigned char number, char ret_name[CODE_NAME_SIZE])
{
    const struct code_entry entry = entry_of(fixture, number);

    code_entry_name(&entry, ret_name);
    assert_int_equal(code_entry_save(&fixture->directory, &entry), 0);
}

static int load(struct fixture *fixture, const char *name)
{
    struct code_entry entry;
    int error = code_entry_load(&fixture->directory, name, &entry);

    if (!error)
        code_entry_fini(&entry);
    return error;
}

static unsigned count(struct fixture *fixture)
{
    struct code_list list;

    assert_int_equal(code_list_read(&fixture->directory, &list), 0);
    unsigned entries = list.count;
    code_list_fini(&list);
    return entries;
}

static int open_file(struct fixture *fixture, const char *name, const char *ending, int flags)
{
    char file[CODE_FILE_SIZE];

    code_file_name(name, ending, file);
    return openat(fixture->directory.fd, file, flags, 0600);
}

static void an_entry_is_read_as_it_was_written(void **state)
{
    struct fixture *fixture = *state;
    char name[CODE_NAME_SIZE];
    struct code_entry entry;

    save(fixture, 1, name);
    assert_int_equal(code_entry_load(&fixture->directory, name, &entry), 0);
    assert_int_equal(entry.origin.compute_capability, 90);
    assert_int_equal(entry.origin.owner, 1000);
    assert_int_equal(entry.image_size, IMAGE_SIZE);
    assert_memory_equal(entry.image, fixture->image, IMAGE_SIZE);
    assert_int_equal(entry.options_size, 4);
    assert_string_equal(entry.options, "abc");
    code_entry_fini(&entry);
    assert_int_equal(count(fixture), 1);
}

static void different_keys_are_different_entries(void **state)
{
    struct fixture *fixture = *state;
    struct code_entry entry = entry_of(fixture, 1);

    for (unsigned i = 0; i < 4; i++) {
        entry.origin.owner += i == 1;
        entry.origin.driver_version += i == 2;
        entry.options = i == 3 ? "abd" : entry.options;
        assert_int_equal(code_entry_save(&fixture->directory, &entry), 0);
        assert_int_equal(code_entry_save(&fixture->directory, &entry), 0);
        assert_int_equal(count(fixture), i + 1);
    }
}

/* Each byte of the file in turn, in large steps. */
static void a_changed_byte_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    char name[CODE_NAME_SIZE];

    for (off_t at = 0; at < (off_t)IMAGE_SIZE; at += 611) {
        unsigned char byte;
        save(fixture, 1, name);
        int fd = open_file(fixture, name, "code", O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 4;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        assert_int_equal(load(fixture, name), -EBADMSG);
        assert_int_equal(count(fixture), 0);
        assert_int_equal(load(fixture, name), -ENOENT);
    }
}

static void a_file_of_another_size_is_noticed(void **state)
{
    static const off_t sizes[] = {0, 8, 1200, IMAGE_SIZE, 1 << 20};
    struct fixture *fixture = *state;
    char name[CODE_NAME_SIZE];

    for (unsigned i = 0; i < 5; i++) {
        save(fixture, 1, name);
        int fd = open_file(fixture, name, "code", O_RDWR);
        assert_int_equal(ftruncate(fd, sizes[i]), 0);
        close(fd);
        assert_int_equal(load(fixture, name), -EBADMSG);
        assert_int_equal(count(fixture), 0);
    }
}

static void an_entry_under_another_name_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    char name[CODE_NAME_SIZE], other[CODE_NAME_SIZE], from[CODE_FILE_SIZE], to[CODE_FILE_SIZE];

    save(fixture, 1, name);
    save(fixture, 2, other);
    code_file_name(name, "code", from);
    code_file_name(other, "code", to);
    assert_int_equal(renameat(fixture->directory.fd, from, fixture->directory.fd, to), 0);
    assert_int_equal(load(fixture, other), -EBADMSG);
    assert_int_equal(count(fixture), 0);
}

static void foreign_files_are_deleted(void **state)
{
    struct fixture *fixture = *state;
    char name[CODE_NAME_SIZE], file[CODE_FILE_SIZE];

    save(fixture, 1, name);
    code_file_name(name, "code", file);
    assert_int_equal(fchmodat(fixture->directory.fd, file, 0644, 0), 0);
    assert_int_equal(load(fixture, name), -EBADF);
    assert_int_equal(load(fixture, name), -ENOENT);
    assert_int_equal(symlinkat("/etc/passwd", fixture->directory.fd, file), 0);
    assert_int_equal(load(fixture, name), -EBADF);
    assert_int_equal(load(fixture, name), -ENOENT);
    save(fixture, 1, name);
    fixture->directory.owner++;
    assert_int_equal(load(fixture, name), -EBADF);
    fixture->directory.owner--;
    assert_int_equal(load(fixture, name), -ENOENT);
}

static void a_directory_for_others_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct code_directory directory;
    char link[96];

    assert_int_equal(chmod(fixture->path, 0750), 0);
    assert_int_equal(code_directory_open(&directory, fixture->path, true), -EPERM);
    assert_int_equal(directory.fd, -1);
    assert_int_equal(chmod(fixture->path, 0700), 0);
    snprintf(link, sizeof(link), "%s/link", fixture->folder);
    assert_int_equal(symlink(fixture->path, link), 0);
    assert_int_not_equal(code_directory_open(&directory, link, true), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(fixture->path, 1, 1), 0);
    assert_int_equal(code_directory_open(&directory, fixture->path, true), -EPERM);
}

static void a_full_disk_leaves_nothing_behind(void **state)
{
    struct fixture *fixture = *state;
    const struct code_entry entry = entry_of(fixture, 1);
    struct rlimit before, limit;
    char name[CODE_NAME_SIZE];

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 2000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int error = code_entry_save(&fixture->directory, &entry);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(error, -EFBIG);
    assert_int_equal(count(fixture), 0);
    code_directory_close(&fixture->directory);
    assert_int_equal(rmdir(fixture->path), 0); /* so there is no file in it */
    assert_int_equal(code_directory_open(&fixture->directory, fixture->path, true), 0);
    save(fixture, 1, name);
    assert_int_equal(load(fixture, name), 0);
}

static void age(struct fixture *fixture, const char *name, int64_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    char file[CODE_FILE_SIZE];

    code_file_name(name, "code", file);
    assert_int_equal(utimensat(fixture->directory.fd, file, times, 0), 0);
}

static void the_oldest_entries_make_room(void **state)
{
    struct fixture *fixture = *state;
    char names[4][CODE_NAME_SIZE];

    fixture->directory.bytes_max = 3 * (IMAGE_SIZE + 1400);
    for (unsigned char i = 0; i < 3; i++) {
        save(fixture, i, names[i]);
        age(fixture, names[i], 1000 + i);
    }
    age(fixture, names[1], 500);
    save(fixture, 3, names[3]);
    assert_int_equal(count(fixture), 3);
    assert_int_equal(load(fixture, names[1]), -ENOENT);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(load(fixture, names[i]), i == 1 ? -ENOENT : 0);
    fixture->directory.bytes_max = IMAGE_SIZE;
    const struct code_entry large = entry_of(fixture, 9);
    assert_int_equal(code_entry_save(&fixture->directory, &large), -EFBIG);
    assert_int_equal(count(fixture), 3);
}

static struct code_kernels kernels_of(const char *names, uint32_t size, uint32_t number)
{
    struct code_kernels kernels = {
        .devices = 1, .count = number, .names_size = size, .names = malloc(size)};

    assert_non_null(kernels.names);
    memcpy(kernels.names, names, size);
    return kernels;
}

static void kernels_are_kept_and_merged(void **state)
{
    struct fixture *fixture = *state;
    struct code_kernels kernels = kernels_of("add\0mul", 8, 2),
                        others = kernels_of("mul\0div", 8, 2);
    char name[CODE_NAME_SIZE];

    save(fixture, 1, name);
    assert_int_equal(code_kernels_save(&fixture->directory, name, &kernels), 0);
    free(kernels.names);
    assert_int_equal(code_kernels_load(&fixture->directory, name, &kernels), 0);
    assert_int_equal(kernels.count, 2);
    others.devices = 4;
    assert_int_equal(code_kernels_merge(&kernels, &others), 0);
    assert_int_equal(kernels.count, 3);
    assert_int_equal(kernels.devices, 5);
    assert_int_equal(kernels.names_size, 12);
    assert_memory_equal(kernels.names, "add\0mul\0div", 12);
    free(kernels.names);
    free(others.names);
}

static void names_without_an_end_are_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct code_kernels kernels = kernels_of("addmul", 6, 1), read;
    char name[CODE_NAME_SIZE];

    save(fixture, 1, name);
    assert_int_equal(code_kernels_save(&fixture->directory, name, &kernels), 0);
    assert_int_equal(code_kernels_load(&fixture->directory, name, &read), -EBADMSG);
    assert_int_equal(code_kernels_load(&fixture->directory, name, &read), -ENOENT);
    assert_int_equal(load(fixture, name), 0);
    free(kernels.names);
}

static void an_entry_whose_server_has_died_is_deleted(void **state)
{
    struct fixture *fixture = *state;
    char names[3][CODE_NAME_SIZE];
    int held = -1, dead = -1, done = -1;

    for (unsigned char i = 0; i < 3; i++)
        save(fixture, i, names[i]);
    assert_int_equal(code_load_lock_take(&fixture->directory, names[0], &held), 0);
    assert_int_equal(code_load_lock_take(&fixture->directory, names[1], &dead), 0);
    assert_int_equal(code_load_lock_take(&fixture->directory, names[2], &done), 0);
    close(dead);
    code_load_lock_release(&fixture->directory, names[2], &done);
    assert_int_equal(code_load_locks_recover(&fixture->directory), 1);
    assert_int_equal(load(fixture, names[0]), 0);
    assert_int_equal(load(fixture, names[1]), -ENOENT);
    assert_int_equal(load(fixture, names[2]), 0);
    assert_int_equal(code_load_locks_recover(&fixture->directory), 0);
    close(held);
}

static void the_environment_says_where_and_how_much(void **state)
{
    char path[PATH_MAX];

    setenv("FUNNEL_CACHE_PATH", "/somewhere", 1);
    assert_true(code_directory_path(path, sizeof(path)));
    assert_string_equal(path, "/somewhere");
    setenv("FUNNEL_CACHE_PATH", "somewhere", 1);
    assert_false(code_directory_path(path, sizeof(path)));
    unsetenv("FUNNEL_CACHE_PATH");
    setenv("XDG_CACHE_HOME", "/caches", 1);
    assert_true(code_directory_path(path, sizeof(path)));
    assert_string_equal(path, geteuid() ? "/caches/funnel" : "/var/cache/funnel");
    unsetenv("FUNNEL_CACHE_MAXSIZE");
    unsetenv("CUDA_CACHE_MAXSIZE");
    assert_int_equal(code_directory_limit(), CODE_BYTES_DEFAULT);
    setenv("CUDA_CACHE_MAXSIZE", "4096", 1);
    assert_int_equal(code_directory_limit(), 4096);
    setenv("FUNNEL_CACHE_MAXSIZE", "2M", 1);
    assert_int_equal(code_directory_limit(), 2 << 20);
    setenv("FUNNEL_CODE_CACHE", "1", 1);
    unsetenv("CUDA_CACHE_DISABLE");
    assert_false(code_directory_is_off());
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    assert_true(code_directory_is_off());
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(an_entry_is_read_as_it_was_written),
        CASE(different_keys_are_different_entries),
        CASE(a_changed_byte_is_noticed),
        CASE(a_file_of_another_size_is_noticed),
        CASE(an_entry_under_another_name_is_noticed),
        CASE(foreign_files_are_deleted),
        CASE(a_directory_for_others_is_refused),
        CASE(a_full_disk_leaves_nothing_behind),
        CASE(the_oldest_entries_make_room),
        CASE(kernels_are_kept_and_merged),
        CASE(names_without_an_end_are_noticed),
        CASE(an_entry_whose_server_has_died_is_deleted),
        cmocka_unit_test(the_environment_says_where_and_how_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
