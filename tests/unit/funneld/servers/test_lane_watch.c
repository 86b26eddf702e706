/* SPDX-License-Identifier: Apache-2.0 */
/* What reports of usage say of the kernels of a program. */
#include "lane_watch.h"

#include "unit.h"

static struct client_pace pace;
static struct server_usage usage;

static int reset(void **state)
{
    pace = (struct client_pace){.at = 0};
    usage = (struct server_usage){.launches = 0};
    return 0;
}

static void report(uint64_t busy_ms, uint64_t shared_ms, uint64_t launches)
{
    usage.gpu_ns[0] += busy_ms * NS_PER_MS;
    usage.shared_ns += shared_ms * NS_PER_MS;
    usage.launches += launches;
    client_pace_note(&pace, &usage, 1);
}

static const struct client_pace long_pace = {.alone_ns = 12 * NS_PER_MS};

static void test_alone(void **state)
{
    report(1200, 0, 100);
    assert_int_equal(pace.alone_ns, 12 * NS_PER_MS);
    report(1200, 1200, 10);
    assert_int_equal(pace.alone_ns, 12 * NS_PER_MS);
    assert_int_equal(pace.launch_ns, 120 * NS_PER_MS);
    assert_int_equal(pace.shared_percent, 100);
    report(10, 0, 1);
    assert_int_equal(pace.launch_ns, 0);
}

static void test_a_launch_that_has_not_ended(void **state)
{
    report(1000, 1000, 0);
    assert_int_equal(pace.launch_ns, 1000 * NS_PER_MS);
}

static void test_waiting(void **state)
{
    report(1000, 0, 1000); /* 1 ms each */
    assert_false(client_pace_waits(&pace, &long_pace));
    report(1000, 900, 625); /* 1.6 ms */
    assert_false(client_pace_waits(&pace, &long_pace));
    report(1000, 900, 500); /* 2 ms */
    assert_true(client_pace_waits(&pace, &long_pace));
    report(1000, 300, 100);
    assert_false(client_pace_waits(&pace, &long_pace));
}

/* As of a graph: 5 us each alone. */
static void test_many_short_kernels_at_a_time(void **state)
{
    report(500, 0, 100000);
    report(1900, 1900, 100000); /* 19 us */
    assert_false(client_pace_waits(&pace, &long_pace));
    report(1900, 1900, 50000); /* 38 us */
    assert_true(client_pace_waits(&pace, &long_pace));
}

static void test_never_seen_alone(void **state)
{
    report(1000, 900, 500);
    assert_false(client_pace_waits(&pace, &long_pace));
    report(1000, 900, 100);
    assert_true(client_pace_waits(&pace, &long_pace));
}

static void test_long_kernels_do_not_wait(void **state)
{
    const struct client_pace short_pace = {.alone_ns = NS_PER_MS};

    report(1200, 0, 100);
    report(1000, 1000, 10);
    assert_false(client_pace_waits(&pace, &long_pace));
    reset(state);
    report(1000, 1000, 10);
    assert_false(client_pace_waits(&pace, &short_pace));
}

/* The other's kernels have been seen beside others only: it has the multiprocessors. */
static void test_neither_was_alone(void **state)
{
    struct client_pace wide = {.launch_ns = 12 * NS_PER_MS, .sm_ns = 132000 * NS_PER_MS};

    usage.sm_ns[0] = 8000 * NS_PER_MS;
    report(1000, 1000, 100);
    assert_true(client_pace_waits(&pace, &wide));
    assert_false(client_pace_waits(&wide, &pace));
    wide.sm_ns = 16000 * NS_PER_MS;
    assert_false(client_pace_waits(&pace, &wide));
}

/* The one that waits has been alone, and has short kernels: it waits for the other one. */
static void test_the_offender_was_never_alone(void **state)
{
    struct client_pace offender = {.launch_ns = 12 * NS_PER_MS, .sm_ns = 1};

    report(1000, 0, 1000);
    usage.sm_ns[0] = 8000 * NS_PER_MS;
    report(1000, 1000, 80);
    assert_true(client_pace_waits(&pace, &offender));
    offender.launch_ns = NS_PER_MS;
    assert_false(client_pace_waits(&pace, &offender));
}

/* A server that starts again counts from 0. */
static void test_figures_that_fall(void **state)
{
    report(1000, 0, 100);
    usage = (struct server_usage){.launches = 1};
    client_pace_note(&pace, &usage, 2);
    assert_int_equal(pace.busy_ns, 0);
    assert_int_equal(pace.launch_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_alone, reset),
        cmocka_unit_test_setup(test_a_launch_that_has_not_ended, reset),
        cmocka_unit_test_setup(test_waiting, reset),
        cmocka_unit_test_setup(test_many_short_kernels_at_a_time, reset),
        cmocka_unit_test_setup(test_never_seen_alone, reset),
        cmocka_unit_test_setup(test_long_kernels_do_not_wait, reset),
        cmocka_unit_test_setup(test_neither_was_alone, reset),
        cmocka_unit_test_setup(test_the_offender_was_never_alone, reset),
        cmocka_unit_test_setup(test_figures_that_fall, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
