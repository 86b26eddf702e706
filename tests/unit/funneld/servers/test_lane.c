/* SPDX-License-Identifier: Apache-2.0 */
/* When a lane ends that has no programs: with a clock that the test sets. */
#include "lane.h"

#include <string.h>

#include "client_record.h"
#include "server_process.h"
#include "unit.h"

static struct daemon daemon_state;
static struct server_process lane;
static uint64_t now;
static unsigned stops;

uint64_t __wrap_clock_ns(void);
void __wrap_server_process_stop(struct server_process *server, bool force);

uint64_t __wrap_clock_ns(void)
{
    return now;
}

void __wrap_server_process_stop(struct server_process *server, bool force)
{
    assert_ptr_equal(server, &lane);
    stops++;
}

static int setup(void **state)
{
    memset(&daemon_state, 0, sizeof(daemon_state));
    daemon_init(&daemon_state);
    strcpy(daemon_state.paths.log, "/nonexistent");
    lane = (struct server_process){
        .daemon = &daemon_state, .role = SERVER_SERVING, .state = SERVER_ACTIVE};
    strcpy(lane.name, "night:spare");
    strcpy(lane.service, "night");
    list_init(&lane.records);
    now = 1000 * NS_PER_SEC;
    stops = 0;
    return 0;
}

static void check_after(uint64_t ns)
{
    now += ns;
    lane_check(&lane);
}

static void serve_program(void)
{
    const struct server_identity identity = {.pid = 1};
    const struct client_program program = {.uid = 0};
    struct client_record *record = client_record_add(&lane, &identity, &program);

    assert_non_null(record);
    client_record_forget(record);
}

static void test_without_programs(void **state)
{
    check_after(0);
    check_after(LANE_IDLE_NS - 1);
    assert_int_equal(stops, 0);
    check_after(1);
    assert_int_equal(stops, 1);
}

static void test_a_program_between_two_checks(void **state)
{
    check_after(0);
    serve_program();
    check_after(LANE_IDLE_NS);
    assert_int_equal(stops, 0);
    check_after(LANE_IDLE_NS);
    assert_int_equal(stops, 1);
}

/* The time in which it stood by does not count. */
static void test_a_standby_that_becomes_the_lane(void **state)
{
    lane.role = SERVER_STANDBY;
    check_after(0);
    check_after(10 * LANE_IDLE_NS);
    lane.role = SERVER_SERVING;
    check_after(LANE_IDLE_NS - 1);
    assert_int_equal(stops, 0);
    check_after(1);
    assert_int_equal(stops, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_without_programs, setup),
        cmocka_unit_test_setup(test_a_program_between_two_checks, setup),
        cmocka_unit_test_setup(test_a_standby_that_becomes_the_lane, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
