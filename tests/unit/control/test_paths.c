/* SPDX-License-Identifier: Apache-2.0 */
/* Directories follow MPS's variables, are absolute, and have limits that are told. */
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static int clear(void **state)
{
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    unsetenv("CUDA_MPS_LOG_DIRECTORY");
    unsetenv("XDG_RUNTIME_DIR");
    return 0;
}

static void test_variables(void **state)
{
    struct paths paths;

    setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/x/", 1);
    assert_int_equal(paths_resolve(&paths), 0);
    assert_string_equal(paths.pipe, "/tmp/x");
    assert_string_equal(paths.log, "/tmp/x/log");
    assert_string_equal(paths.socket, "/tmp/x/funnel");
    setenv("CUDA_MPS_LOG_DIRECTORY", "/var/log/x", 1);
    assert_int_equal(paths_resolve(&paths), 0);
    assert_string_equal(paths.log, "/var/log/x");
}

static void test_relative(void **state)
{
    struct paths paths;
    char cwd[PATH_MAX], expected[PATH_MAX + 8];

    assert_non_null(getcwd(cwd, sizeof(cwd)));
    snprintf(expected, sizeof(expected), "%s/pipe", cwd);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "pipe", 1);
    assert_int_equal(paths_resolve(&paths), 0);
    assert_string_equal(paths.pipe, expected);
}

/* No daemon listens in any of them. */
static void test_several(void **state)
{
    struct paths paths;

    setenv("CUDA_MPS_PIPE_DIRECTORY", ":/nonexistent/a/:/nonexistent/b", 1);
    assert_int_equal(paths_resolve(&paths), -EINVAL);
    assert_int_equal(paths_find_daemon(&paths), 0);
    assert_string_equal(paths.pipe, "/nonexistent/a");
    assert_string_equal(paths.socket, "/nonexistent/a/funnel");
    setenv("CUDA_MPS_PIPE_DIRECTORY", "::", 1);
    assert_int_equal(paths_find_daemon(&paths), -EINVAL);
}

static void test_defaults(void **state)
{
    struct paths paths;

    setenv("CUDA_MPS_PIPE_DIRECTORY", "", 1);
    setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
    assert_int_equal(paths_resolve(&paths), 0);
    if (geteuid() == 0) {
        assert_string_equal(paths.pipe, "/run/funnel");
        assert_string_equal(paths.log, "/var/log/funnel");
    } else {
        assert_string_equal(paths.pipe, "/run/user/1/funnel");
        assert_string_equal(paths.log, "/run/user/1/funnel/log");
    }
}

static void test_too_long(void **state)
{
    struct paths paths;
    char path[PATH_MAX + 1];

    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[PATH_MAX] = '\0';
    setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
    assert_int_equal(paths_resolve(&paths), -ENAMETOOLONG);
    assert_int_equal(path_join(path, "x", path, sizeof(path)), -ENAMETOOLONG);
    assert_int_equal(paths_pipe_max(), 100);
}

static void test_siblings(void **state)
{
    char self[PATH_MAX], expected[PATH_MAX], found[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(length > 0);
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    *strrchr(self, '/') = '\0';
    assert_int_equal(path_join(self, "bin/x", expected, sizeof(expected)), 0);
    assert_int_equal(path_of_sibling("bin/x", found, sizeof(found)), 0);
    assert_string_equal(found, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_variables, clear), cmocka_unit_test_setup(test_relative, clear),
        cmocka_unit_test_setup(test_defaults, clear),  cmocka_unit_test_setup(test_too_long, clear),
        cmocka_unit_test_setup(test_siblings, clear),  cmocka_unit_test_setup(test_several, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
