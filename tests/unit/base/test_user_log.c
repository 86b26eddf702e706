/* SPDX-License-Identifier: Apache-2.0 */
/* Where the user's log lies, that it does not grow forever, and that no link is followed. */
#include "user_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"
#include "unit.h"

static char folder[] = "/tmp/user-log-XXXXXX";

static const char *below(const char *name)
{
    static char path[PATH_MAX];

    text_format(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void test_place(void **state)
{
    char path[PATH_MAX], expected[PATH_MAX];

    setenv("HOME", folder, 1);
    unsetenv("XDG_STATE_HOME");
    assert_int_equal(user_log_path(path, sizeof(path)), 0);
    assert_string_equal(path, below(".local/state/funnel/client.log"));
    setenv("XDG_STATE_HOME", below("state"), 1);
    assert_int_equal(user_log_path(path, sizeof(path)), 0);
    assert_string_equal(path, below("state/funnel/client.log"));
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/nonexistent", 1);
    assert_int_equal(user_log_path(path, sizeof(path)), 0);
    text_format(expected, sizeof(expected), "/tmp/funnel-%u/client.log", (unsigned)geteuid());
    assert_string_equal(path, expected);
    assert_int_equal(user_log_path(path, 10), -ENAMETOOLONG);
}

static void test_directories_are_made(void **state)
{
    struct stat status;
    int fd = user_log_open(below("a/b/client.log"));

    assert_true(fd >= 0);
    fd_close(&fd);
    assert_int_equal(stat(below("a/b"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

static void test_full_file_is_renamed(void **state)
{
    struct stat status;
    int fd = user_log_open(below("full/client.log"));

    assert_int_equal(ftruncate(fd, USER_LOG_SIZE_MAX + 1), 0);
    fd_close(&fd);
    fd = user_log_open(below("full/client.log"));
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, 0);
    fd_close(&fd);
    assert_int_equal(stat(below("full/client.log.1"), &status), 0);
    assert_int_equal(status.st_size, USER_LOG_SIZE_MAX + 1);
}

static void test_links_are_refused(void **state)
{
    char target[PATH_MAX];

    text_copy(target, sizeof(target), below("target"));
    assert_int_equal(mkdir(below("links"), 0700), 0);
    assert_int_equal(symlink(target, below("links/client.log")), 0);
    assert_int_equal(user_log_open(below("links/client.log")), -ELOOP);
    assert_int_equal(symlink("links", below("directory")), 0);
    assert_true(user_log_open(below("directory/client.log")) < 0);
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[PATH_MAX];

    text_format(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_directories_are_made),
        cmocka_unit_test(test_full_file_is_renamed),
        cmocka_unit_test(test_links_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
