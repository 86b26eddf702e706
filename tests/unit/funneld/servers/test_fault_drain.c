/* SPDX-License-Identifier: Apache-2.0 */
/* After a fault the clients of the server are waited for until they have ended or moved. */
#include "fault_drain.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_record.h"
#include "clock.h"
#include "server_process.h"
#include "unit.h"

static struct daemon daemon_state;
static struct server_process server;

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(&server, 0, sizeof(server));
    daemon_init(&daemon_state);
    strcpy(daemon_state.paths.log, "/nonexistent");
    server.daemon = &daemon_state;
    strcpy(server.name, "night");
    list_init(&server.records);
    return 0;
}

static int teardown(void **state)
{
    client_records_close(&server);
    fault_drain_close(&daemon_state);
    return 0;
}

static struct client_record *start_client(uint32_t uid)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
    }
    const struct server_identity identity = {.pid = pid, .uid = uid};
    const struct client_program program = {.uid = uid};
    struct client_record *record = client_record_add(&server, &identity, &program);

    assert_non_null(record);
    record->attached = true;
    return record;
}

static void end_client(const struct client_record *record)
{
    kill(record->identity.pid, SIGKILL);
    waitpid(record->identity.pid, NULL, 0);
}

static bool is_in_progress(void)
{
    return fault_drain_in_progress(&daemon_state, "night");
}

static void test_until_the_last_has_ended(void **state)
{
    const struct client_record *first = start_client(7), *second = start_client(8);

    assert_false(is_in_progress());
    fault_drain_begin(&server, NULL);
    assert_true(is_in_progress());
    assert_false(fault_drain_in_progress(&daemon_state, "day"));
    end_client(first);
    assert_true(is_in_progress());
    end_client(second);
    assert_false(is_in_progress());
}

static void test_one_that_moves(void **state)
{
    const struct client_record *client = start_client(7);

    fault_drain_begin(&server, NULL);
    fault_drain_moved(&daemon_state, client->identity.pid);
    assert_false(is_in_progress());
    end_client(client);
}

static void test_one_that_has_not_attached(void **state)
{
    struct client_record *client = start_client(7);

    client->attached = false;
    fault_drain_begin(&server, NULL);
    assert_false(is_in_progress());
    end_client(client);
}

static void test_one_that_has_ended_before(void **state)
{
    end_client(start_client(7));
    fault_drain_begin(&server, NULL);
    assert_false(is_in_progress());
}

static void test_none_of_the_offenders_user(void **state)
{
    const struct client_record *offender = start_client(7), *second = start_client(7);
    const struct client_record *other = start_client(8);

    fault_drain_begin(&server, &offender->identity);
    assert_true(is_in_progress());
    end_client(other);
    assert_false(is_in_progress());
    end_client(offender);
    end_client(second);
}

/* Once the time of one fault is over, the next one gets none before the minute is. */
static void test_faults_that_follow_each_other(void **state)
{
    const struct client_record *client = start_client(7);

    fault_drain_begin(&server, NULL);
    assert_true(is_in_progress());
    uint64_t deadline = daemon_state.drain_deadline;
    fault_drain_begin(&server, NULL);
    assert_int_equal(daemon_state.drain_deadline, deadline);
    fault_drain_moved(&daemon_state, client->identity.pid);
    daemon_state.drain_deadline = clock_ns();
    fault_drain_begin(&server, NULL);
    assert_false(is_in_progress());
    daemon_state.next_drain = clock_ns();
    fault_drain_begin(&server, NULL);
    assert_true(is_in_progress());
    end_client(client);
}

int main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_until_the_last_has_ended),
        WITH_SERVER(test_one_that_moves),
        WITH_SERVER(test_one_that_has_not_attached),
        WITH_SERVER(test_one_that_has_ended_before),
        WITH_SERVER(test_none_of_the_offenders_user),
        WITH_SERVER(test_faults_that_follow_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
