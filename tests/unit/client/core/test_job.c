/* SPDX-License-Identifier: Apache-2.0 */
/* Who is one of several processes: by the environment, by the command line, by a fork. */
#include "job.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define COMMAND_SIZE 256

static bool has_several(const char *command, size_t size)
{
    char whole[COMMAND_SIZE] = "";

    memcpy(whole, command, size);
    return job_has_several_processes(whole, sizeof(whole));
}

static void test_launchers(void **state)
{
    assert_false(has_several("train", 5));
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    assert_false(has_several("train", 5));
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    assert_true(has_several("train", 5));
    unsetenv("OMPI_COMM_WORLD_SIZE");
    setenv("WORLD_SIZE", "many", 1);
    assert_false(has_several("train", 5));
    setenv("WORLD_SIZE", "2", 1);
    assert_true(has_several("train", 5));
    unsetenv("WORLD_SIZE");
}

static void test_multiprocessing_of_python(void **state)
{
    const char spawned[] = "python3\0-c\0spawn_main()\0--multiprocessing-fork";
    const char other[] = "python3\0train.py\0--multiprocessing";

    assert_true(has_several(spawned, sizeof(spawned)));
    assert_false(has_several(other, sizeof(other)));
}

static void test_a_fork(void **state)
{
    char command[COMMAND_SIZE] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), status = -1;

    assert_true(fd >= 0 && read(fd, command, sizeof(command)) > 0);
    close(fd);
    assert_false(job_has_several_processes(command, sizeof(command)));
    pid_t child = fork();
    if (child == 0)
        _exit(job_has_several_processes(command, sizeof(command)));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, W_EXITCODE(1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers),
        cmocka_unit_test(test_multiprocessing_of_python),
        cmocka_unit_test(test_a_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
