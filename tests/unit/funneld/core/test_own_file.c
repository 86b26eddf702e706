/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's own files: replaced as a whole, and read only where they are its user's alone. */
#include "own_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char folder[64], path[96];

static int setup(void **state)
{
    strcpy(folder, "/tmp/funnel-own-file-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/file", folder);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static void assert_text(const char *expected)
{
    char *text = NULL;
    size_t size = 0;

    assert_int_equal(own_file_read(path, 100, &text, &size), 0);
    assert_string_equal(text, expected);
    assert_int_equal(size, strlen(expected));
    free(text);
}

static void assert_unreadable(size_t most, int error)
{
    char *text = NULL;
    size_t size;

    assert_int_equal(own_file_read(path, most, &text, &size), error);
    assert_null(text);
}

static void test_replaced(void **state)
{
    struct stat status;

    assert_unreadable(100, -ENOENT);
    assert_int_equal(own_file_replace(path, "first", 5), 0);
    assert_text("first");
    assert_int_equal(own_file_replace(path, "", 0), 0);
    assert_text("");
    assert_int_equal(own_file_replace(path, "second", 6), 0);
    assert_text("second");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void test_refused(void **state)
{
    char moved[112];

    assert_int_equal(own_file_replace(path, "text", 4), 0);
    assert_unreadable(3, -EFBIG);
    assert_int_equal(chmod(path, 0640), 0);
    assert_unreadable(100, -EPERM);
    snprintf(moved, sizeof(moved), "%s.moved", path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(chmod(moved, 0600), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_unreadable(100, -ELOOP);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_unreadable(100, -EPERM);
}

/* What does not fit leaves the old text, and no half of the new one. */
static void test_a_full_disk(void **state)
{
    struct rlimit limit, none;
    char next[112];

    assert_int_equal(own_file_replace(path, "old", 3), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    none = (struct rlimit){.rlim_cur = 4, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int error = own_file_replace(path, "a new text", 10);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(error, -EFBIG);
    assert_text("old");
    snprintf(next, sizeof(next), "%s.new", path);
    assert_int_equal(access(next, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_disk, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
