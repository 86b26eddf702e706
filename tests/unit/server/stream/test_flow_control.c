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

/* A later poll, at which a submission is found done that was not done at `before`. */
static void find_done(uint64_t before, uint64_t now)
{
    struct flow_poll poll = {.done = 1, .awaited = 1, .before = before, .now = now};

    flow_control_poll(&flow, &poll);
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
        find_done(now, now);
    }
}

/* A poll in vain after so long. Returns whether the wait counts as a new one from then on. */
static bool wait_for(int32_t awaited, uint64_t ns)
{
    struct flow_poll poll = {
        .awaited = awaited, .before = 1, .awaits_since = NS_PER_SEC, .now = NS_PER_SEC + ns};

    flow_control_poll(&flow, &poll);
    return poll.awaits_since == poll.now;
}

static uint64_t pause_by(enum flow_rule rule, int32_t awaited)
{
    struct flow_poll poll = {.awaited = awaited, .now = NS_PER_SEC, .rule = rule};

    return flow_control_poll(&flow, &poll);
}

static void begin_step(bool is_idle)
{
    struct flow_poll poll = {.begins_step = true, .is_idle = is_idle};

    flow_control_poll(&flow, &poll);
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
    begin_step(false);
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

    find_done(now + NS_PER_MS, now + 20 * NS_PER_MS);
    assert_int_equal(flow.submission_ns, known);
}

static void a_wait_teaches_that_submissions_are_long(void **state)
{
    assert_false(wait_for(2, 10 * NS_PER_MS));
    assert_int_equal(flow.submission_ns, 0);
    assert_false(wait_for(2, 20 * NS_PER_MS));
    assert_int_equal(flow.submission_ns, 10 * NS_PER_MS);
    assert_int_equal(flow.limit, 4);
    assert_false(wait_for(0, NS_PER_SEC));
    assert_int_equal(flow.submission_ns, 10 * NS_PER_MS);
}

static void after_a_timeout_the_limit_doubles(void **state)
{
    run_timed(NS_PER_SEC, 3);
    assert_true(wait_for(1, 2 * NS_PER_SEC));
    assert_int_equal(flow.limit, 4);
    assert_int_equal(flow.passed_at, 0);
}

static void find_idle(int32_t given, uint64_t now)
{
    struct flow_poll poll = {.given = given, .is_idle = true, .now = now};

    assert_int_equal(flow_control_poll(&flow, &poll), 0);
    assert_int_equal(poll.given, 0);
}

static void work_that_took_little_time_in_all_gets_more(void **state)
{
    flow.stepped_at = NS_PER_SEC;
    find_idle(2, 2 * NS_PER_SEC);
    assert_int_equal(flow.limit, 4);
    find_idle(2, NS_PER_SEC + NS_PER_MS);
    assert_int_equal(flow.limit, 64);
}

/* The first burst of a new stream counts as endless, so that it is not waited for in vain. */
static void a_burst_is_allowed_up_to_four_times_the_limit(void **state)
{
    flow.in_flight = 15;
    assert_true(pause_by(FLOW_BY_LIMIT, 1) > 0);
    assert_int_equal(pause_by(FLOW_BY_BURST, 1), 0);
    flow.in_flight = 16;
    assert_true(pause_by(FLOW_BY_BURST, 1) > 0);
}

static void give_burst(int32_t given, bool is_new)
{
    struct flow_poll poll = {.given = given, .is_new_burst = is_new, .awaited = given};

    flow_control_poll(&flow, &poll);
}

static void short_bursts_keep_to_their_length(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        give_burst(6, true);
    flow.in_flight = 6;
    assert_int_equal(pause_by(FLOW_BY_BURST, 1), 0);
    flow.in_flight = 7;
    assert_true(pause_by(FLOW_BY_BURST, 1) > 0);
    give_burst(1, false);
    assert_int_equal(pause_by(FLOW_BY_BURST, 1), 0);
}

static void polls_are_apart_by_a_part_of_the_work(void **state)
{
    flow.in_flight = FLOW_SUBMISSIONS_MAX;
    assert_int_equal(pause_by(FLOW_BY_LIMIT, 0), 20 * NS_PER_US);
    flow.submission_ns = 400 * NS_PER_US;
    assert_int_equal(pause_by(FLOW_BY_LIMIT, 2), 200 * NS_PER_US);
    assert_int_equal(pause_by(FLOW_BY_COUNT, 200), NS_PER_MS);
}

static void steps_are_a_quarter_of_the_limit_and_longer_while_idle(void **state)
{
    begin_step(true);
    assert_int_equal(flow.step, 2);
    run_timed(NS_PER_MS, 40);
    begin_step(false);
    assert_int_equal(flow.step, flow.limit / 4);
    assert_int_equal(flow.left, flow.step);
    run_timed(NS_PER_SEC, 9);
    begin_step(false);
    assert_int_equal(flow.step, 1);
    begin_step(true);
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
