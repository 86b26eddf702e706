/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's own records of the clients of a server, and bounds of what the server says. */
#include "client_record.h"

#include <stdlib.h>
#include <string.h>

#include "client_figures.h"
#include "clock.h"
#include "server_process.h"
#include "unit.h"
#include "usage_totals.h"

#define GIB (1ull << 30)

static struct daemon daemon_state;
static struct server_process server;

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    memset(&server, 0, sizeof(server));
    memset(usage_totals(), 0, sizeof(struct usage_totals));
    daemon_init(&daemon_state);
    strcpy(daemon_state.paths.log, "/nonexistent");
    server.daemon = &daemon_state;
    strcpy(server.name, "night");
    list_init(&server.records);
    server.ready.device_count = 1;
    server.ready.devices[0].memory_total = GIB;
    server.ready.devices[0].sm_count = 8;
    return 0;
}

static int teardown(void **state)
{
    client_records_close(&server);
    return 0;
}

static struct client_record *add(int32_t pid, uint32_t uid)
{
    const struct server_identity identity = {.pid = pid, .uid = uid};
    const struct client_program program = {.uid = uid};
    struct client_record *record = client_record_add(&server, &identity, &program);

    assert_non_null(record);
    return record;
}

static void test_numbers(void **state)
{
    struct client_record *first = add(100, 7), *second = add(101, 7);

    assert_int_not_equal(first->id, 0);
    assert_int_not_equal(first->id, second->id);
    assert_ptr_equal(client_record_find(&server, second->id), second);
    assert_null(client_record_find(&server, 0));
    assert_null(client_record_find(&server, second->id + 1));
    assert_int_equal(server.handed_over, 2);
}

static void test_so_many(void **state)
{
    const struct server_identity identity = {.pid = 1};
    const struct client_program program = {.uid = 7};

    for (unsigned i = 0; i < CLIENT_RECORDS_MAX; i++)
        add((int32_t)i, 7);
    assert_null(client_record_add(&server, &identity, &program));
}

static void test_rows_say_who_by_the_record(void **state)
{
    struct client_record *record = add(100, 7);
    struct server_status_row row;

    server_message_init(&row, SERVER_STATUS_ROW, 3);
    row.id = record->id;
    row.identity.uid = 8;
    strcpy(row.identity.command, "forged");
    row.memory_used[0] = 2 * GIB;
    row.usage.gpu_ns[5] = 1;
    assert_true(client_record_complete(record, &row));
    assert_int_equal(row.identity.uid, 7);
    assert_string_equal(row.identity.command, "");
    assert_true(row.memory_used[0] == GIB);
    assert_true(row.usage.gpu_ns[5] == 0);
    assert_false(client_record_complete(record, &row));
    row.header.request = 4;
    assert_true(client_record_complete(record, &row));
}

static void test_only_who_attached_is_charged(void **state)
{
    struct server_client_gone gone = {.usage.launches = 5};

    client_record_end(add(100, 7), &gone);
    assert_int_equal(usage_totals()->count, 0);
    struct client_record *record = add(101, 7);
    record->attached = true;
    client_record_end(record, &gone);
    assert_int_equal(usage_totals()->count, 1);
    assert_int_equal(usage_totals()->total[0].uid, 7);
    assert_int_equal(usage_totals()->total[0].usage.launches, 5);
    assert_int_equal(server.handed_over, 0);
}

static void test_a_server_that_dies(void **state)
{
    struct client_record *record = add(100, 7);
    struct server_client_gone usage = {.usage.launches = 5};

    record->attached = true;
    client_record_note(record, &usage);
    client_records_close(&server);
    assert_int_equal(usage_totals()->total[0].clients, 1);
    assert_int_equal(usage_totals()->total[0].failed, 1);
    assert_int_equal(usage_totals()->total[0].usage.launches, 5);
}

static void test_bounds(void **state)
{
    const struct client_bounds minute = {&server.ready, 60 * NS_PER_SEC};
    struct server_usage usage = {.gpu_ns = {59 * NS_PER_SEC}, .sm_ns = {8 * 59 * NS_PER_SEC}};

    assert_true(client_usage_bound(&usage, &minute));
    assert_true(usage.sm_ns[0] == 8 * 59 * NS_PER_SEC);
    usage.gpu_ns[0] = 70 * NS_PER_SEC;
    assert_false(client_usage_bound(&usage, &minute));
    assert_true(usage.gpu_ns[0] <= 61 * NS_PER_SEC);
    memset(&usage, 0xff, sizeof(usage));
    assert_false(client_usage_bound(&usage, &minute));
    assert_true(usage.sm_ns[0] <= 8 * 61 * NS_PER_SEC);
    assert_true(usage.sm_ns[1] == 0);
    assert_true(client_usage_bound(&usage, &minute));
}

int main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_numbers),
        WITH_SERVER(test_so_many),
        WITH_SERVER(test_rows_say_who_by_the_record),
        WITH_SERVER(test_only_who_attached_is_charged),
        WITH_SERVER(test_a_server_that_dies),
        WITH_SERVER(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
