/* SPDX-License-Identifier: Apache-2.0 */
/* A server that is ordered to end as soon as it has been started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd.h"
#include "spawn.h"
#include "unit.h"

#define STARTS 100u

/* As libevent does: the handler tells the loop by a descriptor. */
static int told[2];

static void on_signal(int number)
{
    const char byte = (char)number;

    if (write(told[1], &byte, 1) != 1)
        _exit(1);
}

/* The program does not matter: the signal comes before or behind its execution. */
static void start_and_end(int null)
{
    const struct spawn spawn = {.program = "/bin/true",
                                .device = "soft",
                                .pipe_directory = "/",
                                .visible_devices = "",
                                .uid = geteuid(),
                                .log_fd = null,
                                .claims_fd = null,
                                .listen_fd = -1,
                                .state_fd = -1};
    _cleanup_fd_ int control = -1;
    int status;
    pid_t pid;

    assert_int_equal(spawn_server(&spawn, &pid, &control), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* The handler of the daemon does not run in the new process, where it would tell the daemon's own
 * loop. */
static void test_a_signal_is_the_server_s_alone(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal};
    _cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char byte;

    assert_int_equal(pipe2(told, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(sigaction(SIGTERM, &action, NULL), 0);
    for (unsigned i = 0; i < STARTS; i++)
        start_and_end(null);
    assert_int_equal(read(told[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(raise(SIGTERM), 0); /* and still runs here */
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    close(told[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_signal_is_the_server_s_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
