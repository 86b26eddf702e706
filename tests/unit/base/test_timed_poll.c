/* SPDX-License-Identifier: Apache-2.0 */
/* The poll interval grows with the wait; there is no polling where threads queue for a CPU. */
#include "timed_poll.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "unit.h"

#define LONGEST (4 * NS_PER_MS)

/* One that began so long ago. */
static struct timed_poll after(uint64_t ns)
{
    return (struct timed_poll){.enabled = true, .began = clock_ns() - ns};
}

/* The wait is at least so long, and longer where this thread does not get to run. */
static void check_length(uint64_t waited, uint64_t shortest)
{
    struct timed_poll poll = after(waited);
    uint64_t length = timed_poll_next(&poll, 60 * NS_PER_SEC);
    uint64_t most = (clock_ns() - poll.began) / 128;

    assert_in_range(length, shortest, most < shortest ? shortest : most);
}

static void test_short_at_first(void **state)
{
    struct timed_poll poll = after(0);

    check_length(0, 30 * NS_PER_US);
    assert_int_equal(timed_poll_next(&poll, 7), 7);
    assert_int_equal(timed_poll_next(&poll, 7), 7);
}

/* The interval is so long, and longer where this thread does not get to run. */
static void check_next(struct timed_poll *poll, uint64_t length)
{
    uint64_t next = timed_poll_next(poll, LONGEST), most = (clock_ns() - poll->began) / 16;

    assert_in_range(next, length, most < length ? length : most);
}

static struct timed_poll short_of_cpus(uint64_t waited, uint32_t expected)
{
    struct timed_poll poll = after(waited);

    poll.scarcity = (struct timed_poll_scarcity){2 * NS_PER_US, expected};
    return poll;
}

static void check_first(uint32_t expected, uint64_t length)
{
    struct timed_poll poll = short_of_cpus(0, expected);

    assert_false(timed_poll_sleeps_first(poll.scarcity));
    check_next(&poll, length);
}

/* The second poll of a wait that takes as long as expected is the last one. */
static void test_most_of_an_expected_wait_while_cpus_are_short(void **state)
{
    struct timed_poll poll = short_of_cpus(0, 160 * NS_PER_US), plenty = after(0);

    check_first(0, 30 * NS_PER_US);
    check_first(60 * NS_PER_US, 30 * NS_PER_US);
    check_first(160 * NS_PER_US, 130 * NS_PER_US);
    check_first(800 * NS_PER_US, 750 * NS_PER_US);
    check_next(&poll, 130 * NS_PER_US);
    check_next(&poll, 30 * NS_PER_US);
    plenty.scarcity.expected = 160 * NS_PER_US;
    check_next(&plenty, 30 * NS_PER_US);
}

static void test_a_forecast_is_believed_for_a_millisecond(void **state)
{
    struct timed_poll poll = timed_poll_begin((struct timed_poll_scarcity){1, UINT32_MAX});

    assert_int_equal(timed_poll_next(&poll, LONGEST), NS_PER_MS - NS_PER_MS / 16);
    timed_poll_end(&poll);
}

/* Spins of 10 us: half of that, and what sleeps are late, 50 us at most. */
static uint64_t first_with_own_cpu(uint32_t expected)
{
    struct timed_poll poll = short_of_cpus(0, expected);

    poll.scarcity.spin_ns = 10 * NS_PER_US;
    assert_true(timed_poll_sleeps_first(poll.scarcity));
    return timed_poll_next(&poll, LONGEST);
}

static void test_a_thread_with_its_own_cpu_wakes_when_the_end_is_due(void **state)
{
    struct timed_poll poll = short_of_cpus(0, 150 * NS_PER_US);

    assert_in_range(first_with_own_cpu(200 * NS_PER_US), 145 * NS_PER_US, 195 * NS_PER_US);
    poll.scarcity.spin_ns = 10 * NS_PER_US;
    timed_poll_next(&poll, LONGEST);
    check_next(&poll, 10 * NS_PER_US);
}

static void test_other_waits_begin_without_a_sleep(void **state)
{
    const struct timed_poll_scarcity soon = {10 * NS_PER_US, 10 * NS_PER_US},
                                     unknown = {10 * NS_PER_US, 0},
                                     late = {10 * NS_PER_US, 201 * NS_PER_US},
                                     plenty = {0, NS_PER_MS};

    assert_false(timed_poll_sleeps_first(late));
    assert_false(timed_poll_sleeps_first(soon));
    assert_false(timed_poll_sleeps_first(unknown));
    assert_false(timed_poll_sleeps_first(plenty));
}

static void test_waits_that_end_in_a_spin_count_only_with_an_own_cpu(void **state)
{
    const struct timed_poll_scarcity own = {10 * NS_PER_US, 0}, shared = {2 * NS_PER_US, 0};

    assert_true(timed_poll_counts(own, NS_PER_US));
    assert_false(timed_poll_counts(shared, NS_PER_US));
    assert_true(timed_poll_counts(shared, 3 * NS_PER_US));
}

/* A sleep that began so long before it was to end. */
static void note_lateness(uint64_t interval, uint64_t slept)
{
    const struct timed_poll poll = {.woken = clock_ns() - slept, .interval = interval};

    timed_poll_note_lateness(&poll);
}

/* Times are far apart, since this thread may lose its CPU anywhere. */
static void test_first_sleep_ends_earlier_where_sleeps_are_late(void **state)
{
    const uint32_t expected = 200 * NS_PER_US;

    for (unsigned i = 0; i < 100; i++)
        note_lateness(0, 30 * NS_PER_US);
    uint64_t late = first_with_own_cpu(expected);
    note_lateness(NS_PER_SEC, 0); /* was woken */
    note_lateness(0, NS_PER_SEC); /* waited for a CPU */
    assert_int_equal(first_with_own_cpu(expected), late);
    assert_in_range(late, 145 * NS_PER_US, 166 * NS_PER_US);
}

/* A thread that has waited for its CPU polls on, and is woken only in a long wait. */
static void test_polls_go_on_while_cpus_are_short(void **state)
{
    struct timed_poll poll = short_of_cpus(3 * NS_PER_MS, 0),
                      old = short_of_cpus(30 * NS_PER_MS, 0);

    timed_poll_next(&poll, LONGEST);
    poll.woken -= 2 * NS_PER_MS;
    timed_poll_next(&poll, LONGEST);
    assert_true(poll.enabled);
    timed_poll_next(&old, LONGEST);
    assert_true(timed_poll_needs_wake(&old));
}

static void test_a_part_of_the_wait(void **state)
{
    struct timed_poll poll = after(10 * NS_PER_SEC);

    check_length(128 * NS_PER_MS, NS_PER_MS);
    assert_int_equal(timed_poll_next(&poll, LONGEST), LONGEST);
}

static void test_wake_is_needed_after_a_while(void **state)
{
    struct timed_poll poll = after(0), old = after(3 * NS_PER_MS), none = {.enabled = false};

    assert_false(timed_poll_needs_wake(&poll));
    timed_poll_next(&poll, LONGEST);
    assert_false(timed_poll_needs_wake(&poll));
    timed_poll_next(&old, LONGEST);
    assert_true(timed_poll_needs_wake(&old));
    assert_true(timed_poll_needs_wake(&none));
}

static void test_none_where_cpus_are_few(void **state)
{
    struct timed_poll poll = after(NS_PER_MS);

    timed_poll_next(&poll, LONGEST);
    poll.woken -= 2 * NS_PER_MS;
    assert_int_equal(timed_poll_next(&poll, LONGEST), LONGEST);
    assert_int_equal(timed_poll_next(&poll, LONGEST), LONGEST);
}

/* The environment is read once, so this is a process of its own, before the others. */
static void test_none_when_switched_off(void **state)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        setenv("FUNNEL_OFF", "timed-polling", 1);
        struct timed_poll poll = timed_poll_begin((struct timed_poll_scarcity){0});
        _exit(timed_poll_next(&poll, LONGEST) == LONGEST ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_the_thread_stays_as_it_was(void **state)
{
    int before = prctl(PR_GET_TIMERSLACK);
    struct timed_poll poll = timed_poll_begin((struct timed_poll_scarcity){0});

    assert_in_range(timed_poll_next(&poll, LONGEST), 1, LONGEST);
    timed_poll_end(&poll);
    assert_int_equal(prctl(PR_GET_TIMERSLACK), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_when_switched_off),
        cmocka_unit_test(test_short_at_first),
        cmocka_unit_test(test_a_part_of_the_wait),
        cmocka_unit_test(test_most_of_an_expected_wait_while_cpus_are_short),
        cmocka_unit_test(test_a_forecast_is_believed_for_a_millisecond),
        cmocka_unit_test(test_a_thread_with_its_own_cpu_wakes_when_the_end_is_due),
        cmocka_unit_test(test_waits_that_end_in_a_spin_count_only_with_an_own_cpu),
        cmocka_unit_test(test_other_waits_begin_without_a_sleep),
        cmocka_unit_test(test_first_sleep_ends_earlier_where_sleeps_are_late),
        cmocka_unit_test(test_polls_go_on_while_cpus_are_short),
        cmocka_unit_test(test_wake_is_needed_after_a_while),
        cmocka_unit_test(test_none_where_cpus_are_few),
        cmocka_unit_test(test_the_thread_stays_as_it_was),
    };

    return cmocka_run_group_tests_name("timed_poll", tests, NULL, NULL);
}
