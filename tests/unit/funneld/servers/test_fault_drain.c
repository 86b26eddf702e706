/* SPDX-License-Identifier: Apache-2.0 */
/* After a fault the clients of the server are waited for until they have ended or moved. */
#include "fault_drain.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server_process.h"
#include "unit.h"

static struct daemon daemon_state;
static struct server_process server;

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(&server, 0, sizeof(server));
    daemon_init(&daemon_state);
    server.daemon = &daemon_state;
    strcpy(server.name, "night");
    list_init(&server.clients);
    return 0;
}

static int teardown(void **state)
{
    fault_drain_forget_clients(&server);
    fault_drain_close(&daemon_state);
    return 0;
}

static pid_t start_client(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
    }
    fault_drain_attached(&server, pid);
    return pid;
}

static void end_client(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_until_the_last_has_ended(void **state)
{
    pid_t first = start_client(), second = start_client();

    assert_false(fault_drain_in_progress(&daemon_state, "night"));
    fault_drain_begin(&server);
    assert_true(fault_drain_in_progress(&daemon_state, "night"));
    assert_false(fault_drain_in_progress(&daemon_state, "day"));
    end_client(first);
    assert_true(fault_drain_in_progress(&daemon_state, "night"));
    end_client(second);
    assert_false(fault_drain_in_progress(&daemon_state, "night"));
}

static void test_one_that_moves(void **state)
{
    pid_t client = start_client();

    fault_drain_begin(&server);
    fault_drain_moved(&daemon_state, client);
    assert_false(fault_drain_in_progress(&daemon_state, "night"));
    end_client(client);
}

static void test_one_that_has_left_before(void **state)
{
    pid_t client = start_client();

    fault_drain_detached(&server, client);
    fault_drain_begin(&server);
    assert_false(fault_drain_in_progress(&daemon_state, "night"));
    end_client(client);
}

static void test_one_that_has_ended_before(void **state)
{
    end_client(start_client());
    fault_drain_begin(&server);
    assert_false(fault_drain_in_progress(&daemon_state, "night"));
}

int main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_until_the_last_has_ended),
        WITH_SERVER(test_one_that_moves),
        WITH_SERVER(test_one_that_has_left_before),
        WITH_SERVER(test_one_that_has_ended_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
