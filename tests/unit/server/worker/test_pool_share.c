/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions get their turns equally often, however fast the worker is that they have. */
#include "pool_share.h"

#include "clock.h"
#include "unit.h"

#define WORKERS 4u
#define SESSIONS 256u
#define LOOK_NS (20 * NS_PER_MS)

/* Whose sessions always have commands. */
struct worker {
    uint64_t turn_ns; /* what a turn takes it, the time without a CPU included */
    unsigned sessions;
    struct pool_turns recent;
};

static void work(struct worker *worker)
{
    pool_turns_add(&worker->recent, (struct pool_turns){LOOK_NS, LOOK_NS / worker->turn_ns});
}

static void share_out(struct worker *workers)
{
    struct pool_turns recent[WORKERS];
    unsigned shares[WORKERS];

    for (unsigned i = 0; i < WORKERS; i++)
        recent[i] = workers[i].recent;
    pool_share(recent, WORKERS, SESSIONS, shares);
    for (unsigned i = 0; i < WORKERS; i++)
        workers[i].sessions = shares[i];
}

/* The turns of the session that gets the fewest, as a part of an equal share. */
static double least_share(const struct worker *workers)
{
    double sum = 0, least = 1e9;

    for (unsigned i = 0; i < WORKERS; i++) {
        double turns = 1.0 / (double)workers[i].turn_ns / workers[i].sessions;

        assert_true(workers[i].sessions > 0);
        sum += turns * workers[i].sessions;
        least = turns < least ? turns : least;
    }
    return least * SESSIONS / sum;
}

static void work_and_share_out(struct worker *workers)
{
    for (unsigned i = 0; i < WORKERS; i++)
        work(&workers[i]);
    share_out(workers);
}

static void equal_workers_get_equal_shares(void **state)
{
    struct worker workers[WORKERS] = {{30000}, {30000}, {30000}, {30000}};

    share_out(workers);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(workers[i].sessions, SESSIONS / WORKERS);
    work_and_share_out(workers);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(workers[i].sessions, SESSIONS / WORKERS);
}

/* One has 60 % of a CPU, and another one 70 %. */
static void slow_workers_get_fewer_sessions(void **state)
{
    struct worker workers[WORKERS] = {{30000}, {50000}, {43000}, {30000}};

    share_out(workers);
    assert_true(least_share(workers) < 0.8);
    work_and_share_out(workers);
    assert_true(least_share(workers) > 0.95);
}

/* Rounded down one after the other, eight sessions would be 1, 2, 2 and 3. */
static void workers_that_differ_little_have_as_many(void **state)
{
    struct pool_turns recent[WORKERS] = {
        {LOOK_NS, 850}, {LOOK_NS, 900}, {LOOK_NS, 950}, {LOOK_NS, 1000}};
    unsigned shares[WORKERS];

    for (unsigned each = 1; each <= 4; each++) {
        pool_share(recent, WORKERS, each * WORKERS, shares);
        for (unsigned i = 0; i < WORKERS; i++)
            assert_int_equal(shares[i], each);
    }
}

static void the_fastest_worker_has_the_session_that_is_left_over(void **state)
{
    struct pool_turns recent[WORKERS] = {
        {LOOK_NS, 900}, {LOOK_NS, 1000}, {LOOK_NS, 950}, {LOOK_NS, 850}};
    unsigned shares[WORKERS];

    pool_share(recent, WORKERS, 9, shares);
    assert_int_equal(shares[0], 2);
    assert_int_equal(shares[1], 3);
    assert_int_equal(shares[2], 2);
    assert_int_equal(shares[3], 2);
}

/* A worker that has less of its CPU from now on is noticed within a second, and not at once. */
static void shares_follow_the_workers(void **state)
{
    struct worker workers[WORKERS] = {{30000}, {30000}, {30000}, {30000}};

    for (unsigned look = 0; look < 50; look++)
        work_and_share_out(workers);
    workers[2].turn_ns = 50000;
    work_and_share_out(workers);
    assert_true(workers[2].sessions > SESSIONS / WORKERS - 8);
    for (unsigned look = 0; look < 50; look++)
        work_and_share_out(workers);
    assert_true(least_share(workers) > 0.95);
}

static void a_new_worker_counts_as_an_average_one(void **state)
{
    struct worker workers[WORKERS] = {{20000}, {40000}, {30000}, {30000}};

    work(&workers[0]);
    work(&workers[1]);
    share_out(workers);
    assert_in_range(workers[3].sessions, 60, 68);
    assert_in_range(workers[2].sessions, 60, 68);
    assert_true(workers[0].sessions > workers[1].sessions);
}

/* Whose numbers have become so small that they say nothing of its speed. */
static void a_worker_that_has_rested_counts_as_an_average_one(void **state)
{
    struct worker workers[WORKERS] = {{30000}, {30000}, {30000}, {30000}};

    for (unsigned i = 0; i < WORKERS; i++)
        work(&workers[i]);
    for (unsigned look = 0; look < 300; look++) {
        work(&workers[0]);
        work(&workers[1]);
        for (unsigned i = 2; i < WORKERS; i++)
            pool_turns_add(&workers[i].recent, (struct pool_turns){0});
        share_out(workers);
        for (unsigned i = 0; i < WORKERS; i++)
            assert_in_range(workers[i].sessions, 60, 68);
    }
}

/* It has had other commands than the others, or hardly any CPU. */
static void no_worker_is_left_alone(void **state)
{
    struct worker workers[WORKERS] = {{1000}, {30000}, {30000}, {30000000}};

    work_and_share_out(workers);
    assert_in_range(workers[0].sessions, 80, 160);
    assert_in_range(workers[3].sessions, 16, 64);
}

static void all_sessions_are_shared_out(void **state)
{
    struct pool_turns recent[3] = {{LOOK_NS, 7}, {LOOK_NS, 11}, {LOOK_NS, 13}};
    unsigned shares[3];

    for (unsigned sessions = 0; sessions < 300; sessions++) {
        pool_share(recent, 3, sessions, shares);
        assert_int_equal(shares[0] + shares[1] + shares[2], sessions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_workers_get_equal_shares),
        cmocka_unit_test(slow_workers_get_fewer_sessions),
        cmocka_unit_test(workers_that_differ_little_have_as_many),
        cmocka_unit_test(the_fastest_worker_has_the_session_that_is_left_over),
        cmocka_unit_test(shares_follow_the_workers),
        cmocka_unit_test(a_new_worker_counts_as_an_average_one),
        cmocka_unit_test(a_worker_that_has_rested_counts_as_an_average_one),
        cmocka_unit_test(no_worker_is_left_alone),
        cmocka_unit_test(all_sessions_are_shared_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
