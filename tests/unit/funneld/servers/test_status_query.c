/* SPDX-License-Identifier: Apache-2.0 */
/* A status query collects the rows of servers, and ends with the last that answers or dies. */
#include "status_query.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pending_request.h"
#include "server_process.h"
#include "sock.h"
#include "unit.h"

static struct daemon daemon_state;
static struct server_process servers[2];
static int far_ends[2];
static unsigned done, clients, responding;

static void on_message(void *owner, const void *data, size_t size)
{
}

static const struct connection_handlers handlers = {on_message, NULL};

static void on_done(struct status_query *query, void *context)
{
    done++;
    for (unsigned i = 0; i < query->report_count; i++) {
        clients += query->reports[i].client_count;
        responding += query->reports[i].server.responding;
    }
}

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(servers, 0, sizeof(servers));
    done = clients = responding = 0;
    daemon_init(&daemon_state);
    daemon_state.base = event_base_new();
    for (int i = 0; i < 2; i++) {
        int ends[2];

        servers[i].daemon = &daemon_state;
        servers[i].state = SERVER_ACTIVE;
        servers[i].pid = 100 + i;
        strcpy(servers[i].name, i ? "day" : "night");
        list_init(&servers[i].requests);
        list_append(&daemon_state.servers, &servers[i].link);
        if (sock_pair(ends) || connection_open(&servers[i].connection, daemon_state.base, ends[0],
                                               &handlers, &servers[i]))
            return -1;
        far_ends[i] = ends[1];
    }
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < 2; i++) {
        pending_requests_end(&servers[i]);
        connection_close(&servers[i].connection);
        close(far_ends[i]);
    }
    event_base_free(daemon_state.base);
    return 0;
}

static void answer(int i, unsigned rows)
{
    struct server_status_row row;
    struct server_status_end end = {.client_count = rows};

    server_message_init(&row, SERVER_STATUS_ROW, servers[i].last_request);
    for (unsigned j = 0; j < rows; j++)
        pending_request_row(&servers[i], &row);
    pending_request_answered(&servers[i], servers[i].last_request, 0, &end);
}

static void test_all_servers(void **state)
{
    assert_int_equal(status_query_start(&daemon_state, NULL, NULL, on_done, NULL), 0);
    answer(0, 40);
    assert_int_equal(done, 0);
    answer(1, 2);
    assert_int_equal(done, 1);
    assert_int_equal(clients, 42);
    assert_int_equal(responding, 2);
}

static void test_a_server_that_dies(void **state)
{
    status_query_start(&daemon_state, NULL, NULL, on_done, NULL);
    answer(0, 1);
    pending_requests_end(&servers[1]);
    assert_int_equal(done, 1);
    assert_int_equal(clients, 1);
    assert_int_equal(responding, 1);
}

static bool is_named(const struct server_process *server, const void *name)
{
    return !strcmp(server->name, name);
}

static void test_one_server(void **state)
{
    status_query_start(&daemon_state, is_named, "day", on_done, NULL);
    assert_int_equal(servers[0].last_request, 0);
    answer(1, 3);
    assert_int_equal(done, 1);
    assert_int_equal(clients, 3);
}

static void test_no_server(void **state)
{
    status_query_start(&daemon_state, is_named, "noon", on_done, NULL);
    assert_int_equal(done, 1);
}

/* A server that starts cannot answer yet. */
static void test_a_server_that_starts(void **state)
{
    servers[0].state = SERVER_INITIALIZING;
    status_query_start(&daemon_state, is_named, "night", on_done, NULL);
    assert_int_equal(done, 1);
    assert_int_equal(responding, 0);
}

static pid_t stop_child(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(raise(SIGSTOP));
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

static void test_a_server_that_is_stopped(void **state)
{
    servers[0].pid = stop_child();
    status_query_start(&daemon_state, NULL, NULL, on_done, NULL);
    answer(1, 2);
    assert_int_equal(done, 1);
    assert_int_equal(clients, 2);
    assert_int_equal(responding, 1);
    kill(servers[0].pid, SIGKILL);
    waitpid(servers[0].pid, NULL, 0);
}

static void test_a_server_whose_heartbeats_stop(void **state)
{
    const struct server_heartbeat heartbeat = {.waiting = 0};

    heartbeat_begin(&servers[0]);
    servers[0].heartbeat.heard = 1;
    status_query_start(&daemon_state, is_named, "night", on_done, NULL);
    assert_int_equal(done, 0); /* it may be one that sends none */
    answer(0, 1);
    heartbeat_received(&servers[0], &heartbeat);
    servers[0].heartbeat.heard = 1;
    status_query_start(&daemon_state, is_named, "night", on_done, NULL);
    assert_int_equal(done, 2);
    heartbeat_end(&servers[0]);
}

static void test_late_and_unknown_answers(void **state)
{
    struct server_status_end end = {.client_count = 1};

    status_query_start(&daemon_state, is_named, "night", on_done, NULL);
    pending_request_answered(&servers[0], 77, 0, &end);
    assert_int_equal(done, 0);
    answer(0, 1);
    pending_request_answered(&servers[0], servers[0].last_request, 0, &end);
    assert_int_equal(done, 1);
}

/* In another PID namespace clients have no process id, and their ID counts. */
static void test_the_client_of_a_query(void **state)
{
    struct server_status_row near = {.identity.pid = 4711, .id = 2}, far = {.id = 2};

    assert_true(status_row_is_client(&near, 4711));
    assert_false(status_row_is_client(&near, 2));
    assert_true(status_row_is_client(&far, 2));
    assert_false(status_row_is_client(&far, 4711));
}

/* Of the two servers that have a program, the one that is meant. */
static long place_of(struct server_status_row one, struct server_status_row other)
{
    struct status_report reports[] = {{.clients = &one, .client_count = 1},
                                      {.clients = &other, .client_count = 1}};
    const struct status_query query = {.reports = reports, .report_count = 2};
    const struct status_report *report;
    const struct server_status_row *row;

    one.identity.pid = other.identity.pid = 4711;
    assert_true(status_query_find(&query, 4711, &report, &row));
    assert_ptr_equal(row, report->clients);
    return report - reports;
}

static void test_a_program_that_moves(void **state)
{
    const struct server_status_row came = {.id = 2, .state = SERVER_CLIENT_ACTIVE};
    const struct server_status_row left = {.id = 1, .state = SERVER_CLIENT_ACTIVE};
    const struct server_status_row ends = {.id = 1, .state = SERVER_CLIENT_INACTIVE};
    const struct server_status_row comes = {.id = 2, .state = SERVER_CLIENT_INACTIVE};

    assert_int_equal(place_of(left, came), 1);
    assert_int_equal(place_of(came, left), 0);
    assert_int_equal(place_of(ends, came), 1);
    assert_int_equal(place_of(left, comes), 0);
    assert_int_equal(place_of(comes, left), 1);
}

int main(void)
{
#define WITH_SERVERS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_SERVERS(test_all_servers),
        WITH_SERVERS(test_a_server_that_dies),
        WITH_SERVERS(test_one_server),
        WITH_SERVERS(test_no_server),
        WITH_SERVERS(test_a_server_that_starts),
        WITH_SERVERS(test_a_server_that_is_stopped),
        WITH_SERVERS(test_a_server_whose_heartbeats_stop),
        WITH_SERVERS(test_late_and_unknown_answers),
        cmocka_unit_test(test_the_client_of_a_query),
        cmocka_unit_test(test_a_program_that_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
