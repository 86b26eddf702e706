/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of how many submissions of a stream may be in flight. */
#include "flow_control.h"
#include "unit.h"

static struct flow_control flow;

static int begin(void **state)
{
    flow = (struct flow_control){0};
    flow_control_init(&flow, false);
    return 0;
}

/* Submissions that take so long each or 1 ns longer, a checkpoint behind each: equal times would
 * teach nothing new. */
static void run_timed(uint64_t each_ns, int32_t count)
{
    uint64_t now = NS_PER_SEC;

    flow.passed_at = flow.passed_after = now;
    for (int32_t i = 0; i < count; i++) {
        flow.in_flight++;
        now += each_ns + i % 2;
        flow_control_done(&flow, 1, now, now);
    }
}

static void the_limit_is_forty_milliseconds_of_work(void **state)
{
    run_timed(4 * NS_PER_MS, 40);
    assert_in_range(flow.limit, 9, 10);
    assert_in_range(flow.batch, 4, 5);
    assert_int_equal(flow.in_flight, 0);
}

/* On borrowed multiprocessors: from the next submission on, which counts those before. */
static void the_time_in_flight_changes(void **state)
{
    run_timed(100 * NS_PER_US, 40);
    assert_in_range(flow.limit, 395, 400);
    flow_control_step(&flow, false);
    flow.left -= 3;
    flow_control_set_time(&flow, FLOW_LENT_NS);
    assert_in_range(flow.limit, 9, 10);
    assert_int_equal(flow.left, 0);
    assert_int_equal(flow.step, 3);
    run_timed(100 * NS_PER_US, 40);
    assert_in_range(flow.limit, 9, 10);
    flow_control_set_time(&flow, FLOW_IN_FLIGHT_NS);
    assert_in_range(flow.limit, 395, 400);
}

static void the_limit_at_most_doubles_with_each_time(void **state)
{
    int32_t before = flow.limit;

    run_timed(NS_PER_US, 1);
    assert_int_equal(flow.limit, 2 * before);
    run_timed(NS_PER_US, 20);
    assert_int_equal(flow.limit, FLOW_SUBMISSIONS_MAX);
    assert_int_equal(flow.batch, FLOW_BATCH_MAX);
}

static void long_submissions_come_two_at_a_time(void **state)
{
    run_timed(NS_PER_SEC, 3);
    assert_int_equal(flow.limit, 2);
    assert_int_equal(flow.batch, 1);
}

/* Between the bounds the average may be the truth. */
static void bounds_around_the_average_teach_nothing(void **state)
{
    run_timed(4 * NS_PER_MS, 10);
    uint64_t known = flow.submission_ns, now = flow.passed_at;

    flow_control_done(&flow, 1, now + NS_PER_MS, now + 20 * NS_PER_MS);
    assert_int_equal(flow.submission_ns, known);
}

static void a_wait_teaches_that_submissions_are_long(void **state)
{
    assert_false(flow_control_waited(&flow, 2, 10 * NS_PER_MS));
    assert_int_equal(flow.submission_ns, 0);
    assert_false(flow_control_waited(&flow, 2, 20 * NS_PER_MS));
    assert_int_equal(flow.submission_ns, 10 * NS_PER_MS);
    assert_int_equal(flow.limit, 4);
    assert_false(flow_control_waited(&flow, 0, NS_PER_SEC));
    assert_int_equal(flow.submission_ns, 10 * NS_PER_MS);
}

static void after_a_timeout_the_limit_doubles(void **state)
{
    run_timed(NS_PER_SEC, 3);
    assert_true(flow_control_waited(&flow, 1, 2 * NS_PER_SEC));
    assert_int_equal(flow.limit, 4);
    assert_int_equal(flow.passed_at, 0);
}

static void work_that_took_little_time_in_all_gets_more(void **state)
{
    flow.stepped_at = NS_PER_SEC;
    flow_control_done_since_step(&flow, 2, 2 * NS_PER_SEC);
    assert_int_equal(flow.limit, 4);
    flow_control_done_since_step(&flow, 2, NS_PER_SEC + NS_PER_MS);
    assert_int_equal(flow.limit, 64);
}

/* The first burst of a new stream counts as endless, so that it is not waited for in vain. */
static void a_burst_is_allowed_up_to_four_times_the_limit(void **state)
{
    flow.in_flight = 15;
    assert_false(flow_control_has_capacity(&flow, true));
    assert_true(flow_control_has_capacity(&flow, false));
    flow.in_flight = 16;
    assert_false(flow_control_has_capacity(&flow, false));
}

static void short_bursts_keep_to_their_length(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        flow_control_count_burst(&flow, 6, true);
    flow.in_flight = 6;
    assert_true(flow_control_has_capacity(&flow, false));
    flow.in_flight = 7;
    assert_false(flow_control_has_capacity(&flow, false));
    flow_control_count_burst(&flow, 1, false);
    assert_true(flow_control_has_capacity(&flow, false));
}

static void polls_are_apart_by_a_part_of_the_work(void **state)
{
    assert_int_equal(flow_control_poll_ns(&flow, 0), 20 * NS_PER_US);
    flow.submission_ns = 400 * NS_PER_US;
    assert_int_equal(flow_control_poll_ns(&flow, 2), 200 * NS_PER_US);
    assert_int_equal(flow_control_poll_ns(&flow, 200), NS_PER_MS);
}

static void steps_are_a_quarter_of_the_limit_and_longer_while_idle(void **state)
{
    flow_control_step(&flow, true);
    assert_int_equal(flow.step, 2);
    run_timed(NS_PER_MS, 40);
    flow_control_step(&flow, false);
    assert_int_equal(flow.step, flow.limit / 4);
    assert_int_equal(flow.left, flow.step);
    run_timed(NS_PER_SEC, 9);
    flow_control_step(&flow, false);
    assert_int_equal(flow.step, 1);
    flow_control_step(&flow, true);
    assert_int_equal(flow.step, 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        CASE(the_limit_is_forty_milliseconds_of_work),
        CASE(the_time_in_flight_changes),
        CASE(the_limit_at_most_doubles_with_each_time),
        CASE(long_submissions_come_two_at_a_time),
        CASE(bounds_around_the_average_teach_nothing),
        CASE(a_wait_teaches_that_submissions_are_long),
        CASE(after_a_timeout_the_limit_doubles),
        CASE(work_that_took_little_time_in_all_gets_more),
        CASE(a_burst_is_allowed_up_to_four_times_the_limit),
        CASE(short_bursts_keep_to_their_length),
        CASE(polls_are_apart_by_a_part_of_the_work),
        CASE(steps_are_a_quarter_of_the_limit_and_longer_while_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
