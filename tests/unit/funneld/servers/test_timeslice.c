/* SPDX-License-Identifier: Apache-2.0 */
/* Which time slices servers get. */
#include "timeslice.h"

#include "server_process.h"

#include "unit.h"

static void test_none_is_given(void **state)
{
    assert_int_equal(timeslice_of(0, 0, 5, 0), 0);
}

static void test_percentages(void **state)
{
    assert_int_equal(timeslice_of(75, 100, 0, 0), 7500);
    assert_int_equal(timeslice_of(25, 100, 0, 0), 2500);
    assert_int_equal(timeslice_of(1, 1, 0, 0), 100);
}

static void test_others_share_the_rest(void **state)
{
    assert_int_equal(timeslice_of(0, 40, 1, 0), 6000);
    assert_int_equal(timeslice_of(0, 40, 3, 0), 2000);
}

/* A slice of 0 would starve a server. */
static void test_none_starves(void **state)
{
    assert_int_equal(timeslice_of(0, 100, 1, 0), 100);
    assert_int_equal(timeslice_of(0, 250, 7, 0), 100);
    assert_int_equal(timeslice_of(0, 40, 1000, 0), 100);
}

/* The slices of a policy; percentages divide five of them. */
static void test_policies(void **state)
{
    assert_int_equal(timeslice_of_policy(0), 0);
    assert_int_equal(timeslice_of(0, 0, 5, timeslice_of_policy(1)), 1000);
    assert_int_equal(timeslice_of(0, 0, 5, timeslice_of_policy(2)), 5000);
    assert_int_equal(timeslice_of(0, 0, 5, timeslice_of_policy(3)), 20000);
    assert_int_equal(timeslice_of(75, 100, 0, 20000), 75000);
    assert_int_equal(timeslice_of(0, 60, 2, 1000), 1000);
}

/* The main lane has a long slice beside a batch lane of its service, and if no other service runs.
 */
static void test_main_lane(void **state)
{
    assert_int_equal(timeslice_of_main(0, 1, false), 0);
    assert_int_equal(timeslice_of_main(1, 1, false), TIMESLICE_MAIN_US);
    assert_int_equal(timeslice_of_main(1, 1, true), TIMESLICE_HELD_US);
    assert_int_equal(timeslice_of_main(1, 2, true), 0);
}

/* 2222 us of 22222 are a tenth. */
static void test_batch_lanes_get_their_share(void **state)
{
    assert_int_equal(timeslice_of_batch(10, TIMESLICE_MAIN_US, 1, TIMESLICE_BATCH_US), 2222);
    assert_int_equal(timeslice_of_batch(10, TIMESLICE_MAIN_US, 2, TIMESLICE_BATCH_US), 1111);
    assert_int_equal(timeslice_of_batch(50, TIMESLICE_MAIN_US, 1, TIMESLICE_BATCH_US),
                     TIMESLICE_MAIN_US);
    assert_int_equal(timeslice_of_batch(90, 2000, 1, TIMESLICE_BATCH_US), 18000);
}

/* While all main lanes rest now and then, or where operators want no share. */
static void test_batch_lanes_without_a_share(void **state)
{
    assert_int_equal(timeslice_of_batch(10, 0, 1, TIMESLICE_BATCH_US), TIMESLICE_BATCH_US);
    assert_int_equal(timeslice_of_batch(0, TIMESLICE_MAIN_US, 1, TIMESLICE_BATCH_US),
                     TIMESLICE_BATCH_US);
    assert_int_equal(timeslice_of_batch(10, TIMESLICE_MAIN_US, 0, TIMESLICE_BATCH_US), 2222);
}

static void note(struct server_process *server, uint32_t percent, bool held)
{
    timeslice_note_load(server, (struct timeslice_load){percent, held});
}

/* A main lane is judged while there are batch programs, which may have been in it before. */
static void test_load_beside_batch_programs(void **state)
{
    struct daemon daemon_state = {.batch_percent = 10};
    struct server_process main_lane = {.daemon = &daemon_state, .name = "night"};
    struct server_process batch_lane = {.daemon = &daemon_state, .name = "night:batch"};

    list_init(&daemon_state.servers);
    list_append(&daemon_state.servers, &main_lane.link);
    list_append(&daemon_state.servers, &batch_lane.link);
    for (unsigned i = 0; i < 20; i++)
        note(&main_lane, 100, false);
    assert_int_equal(main_lane.unrested_beats, 0);
    batch_lane.handed_over = 1;
    for (unsigned i = 1; i < 5; i++) {
        note(&main_lane, 90, false);
        assert_int_equal(main_lane.unrested_beats, i);
    }
    note(&main_lane, 89, false);
    assert_int_equal(main_lane.unrested_beats, 0);
}

/* At once, and beside batch programs alone. */
static void test_requests_that_follow_closely(void **state)
{
    struct daemon daemon_state = {.batch_percent = 10};
    struct server_process main_lane = {.daemon = &daemon_state, .name = "night"};
    struct server_process batch_lane = {.daemon = &daemon_state, .name = "night:batch"};

    list_init(&daemon_state.servers);
    list_append(&daemon_state.servers, &main_lane.link);
    list_append(&daemon_state.servers, &batch_lane.link);
    note(&main_lane, 50, true);
    assert_false(main_lane.held);
    batch_lane.handed_over = 1;
    note(&main_lane, 50, true);
    assert_true(main_lane.held);
    note(&main_lane, 50, false);
    assert_false(main_lane.held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_given),
        cmocka_unit_test(test_percentages),
        cmocka_unit_test(test_others_share_the_rest),
        cmocka_unit_test(test_none_starves),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_main_lane),
        cmocka_unit_test(test_batch_lanes_get_their_share),
        cmocka_unit_test(test_batch_lanes_without_a_share),
        cmocka_unit_test(test_load_beside_batch_programs),
        cmocka_unit_test(test_requests_that_follow_closely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
