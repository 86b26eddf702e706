/* SPDX-License-Identifier: Apache-2.0 */
/* Clients between two servers: of which the daemon keeps something, for how long, and for whom it
 * waits. */
#include "departed.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "server_process.h"
#include "unit.h"

static struct daemon daemon_state;
static struct server_process server;
static struct client_record record;
static uint64_t now;

uint64_t __wrap_clock_ns(void);

uint64_t __wrap_clock_ns(void)
{
    return now;
}

/* A client of this process that moves. */
static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(&server, 0, sizeof(server));
    daemon_init(&daemon_state);
    server.daemon = &daemon_state;
    strcpy(server.service, "night");
    now = NS_PER_SEC;
    record = (struct client_record){.server = &server,
                                    .id = 7,
                                    .identity = {.pid = getpid(), .owner = 1000},
                                    .token = {1},
                                    .attached = true,
                                    .has_moved = true};
    return 0;
}

static int teardown(void **state)
{
    departed_fini(&daemon_state);
    return 0;
}

static bool is_kept(void)
{
    return departed_find(&daemon_state, "night", record.token) != NULL;
}

static bool is_awaited(void)
{
    return departed_awaited(&daemon_state, record.identity.pid) != NULL;
}

static void test_a_moving_client_is_kept_and_awaited(void **state)
{
    departed_enter(&record);
    assert_int_equal(departed_find(&daemon_state, "night", record.token)->id, 7);
    assert_null(departed_find(&daemon_state, "day", record.token));
    assert_true(is_awaited());
    assert_null(departed_awaited(&daemon_state, 1));
}

/* A server that has answered before, or that answers later, has named no client. */
static void test_an_arrived_client_is_looked_for(void **state)
{
    departed_enter(&record);
    departed_arrive(&daemon_state, record.token);
    assert_false(is_kept());
    assert_true(is_awaited());
    now += 6 * NS_PER_SEC;
    assert_false(is_awaited());
    departed_arrive(&daemon_state, record.token);
    assert_true(list_empty(&daemon_state.departed));
}

static void test_a_late_client_is_kept_and_not_awaited(void **state)
{
    departed_enter(&record);
    now += 60 * NS_PER_SEC;
    assert_false(is_awaited());
    assert_true(is_kept());
}

static void test_an_ended_process_is_not_awaited(void **state)
{
    record.identity.pid = fork();
    if (record.identity.pid == 0)
        _exit(0);
    waitpid(record.identity.pid, NULL, 0);
    departed_enter(&record);
    assert_false(is_awaited());
}

/* Its limits are kept, and it comes when it likes. */
static void test_own_limits_are_kept(void **state)
{
    record.has_moved = false;
    record.has_limits = true;
    departed_enter(&record);
    assert_true(is_kept());
    assert_false(is_awaited());
}

static void test_nothing_else_is_kept(void **state)
{
    record.attached = false;
    departed_enter(&record);
    assert_false(is_kept());
    record.attached = true;
    record.has_moved = false;
    departed_enter(&record);
    assert_false(is_kept());
    record.has_moved = true;
    memset(record.token, 0, sizeof(record.token));
    departed_enter(&record);
    assert_false(is_kept());
}

/* They push out one another only. */
static void test_a_user_pushes_out_its_own_clients_only(void **state)
{
    departed_enter(&record);
    struct client_record first = record;

    record.identity.owner = 1001;
    for (unsigned i = 0; i <= DEPARTED_MAX; i++) {
        record.token[0] = 2;
        memcpy(record.token + 4, &i, sizeof(i));
        departed_enter(&record);
        assert_true(is_kept());
    }
    memset(record.token + 4, 0, 4);
    assert_false(is_kept());
    record = first;
    assert_true(is_kept());
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_moving_client_is_kept_and_awaited),
        CASE(test_an_arrived_client_is_looked_for),
        CASE(test_a_late_client_is_kept_and_not_awaited),
        CASE(test_an_ended_process_is_not_awaited),
        CASE(test_own_limits_are_kept),
        CASE(test_nothing_else_is_kept),
        CASE(test_a_user_pushes_out_its_own_clients_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
