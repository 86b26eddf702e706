/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs count as trainings. */
#include "launch_rate.h"

#include "unit.h"

static struct launch_counts so_far;

static void note(struct launch_rate *rate, struct launch_counts more)
{
    so_far.launches += more.launches;
    so_far.lone += more.lone;
    so_far.fences += more.fences;
    launch_rate_note(rate, so_far);
}

static bool is_training(struct launch_counts counts)
{
    struct launch_rate rate = {.before = so_far};

    note(&rate, counts);
    return launch_rate_is_training(&rate);
}

static void a_training_computes_between_launches_and_waits_for_few(void **state)
{
    assert_true(is_training((struct launch_counts){.launches = 550, .lone = 60, .fences = 10}));
    assert_false(is_training((struct launch_counts){0}));
}

static void a_client_that_waits_for_launches_is_no_training(void **state)
{
    assert_false(is_training((struct launch_counts){.launches = 500, .fences = 500}));
    assert_false(is_training((struct launch_counts){.launches = 550, .lone = 60, .fences = 100}));
}

static void a_client_that_queues_launches_is_no_training(void **state)
{
    assert_false(is_training((struct launch_counts){.launches = 5000, .lone = 5, .fences = 1}));
}

static void the_past_is_forgotten_slowly(void **state)
{
    struct launch_rate rate = {.before = so_far};

    note(&rate, (struct launch_counts){.launches = 550, .lone = 60, .fences = 10});
    uint64_t first = rate.recent.launches;
    for (unsigned looks = 0; looks < 20; looks++)
        note(&rate, (struct launch_counts){0});
    assert_true(launch_rate_is_training(&rate));
    assert_in_range(rate.recent.launches, first / 2, first * 2 / 3);
    for (unsigned looks = 0; looks < 100; looks++)
        note(&rate, (struct launch_counts){.launches = 55, .fences = 55});
    assert_false(launch_rate_is_training(&rate));
}

/* Its copies may keep it busy. */
static void a_client_that_launches_no_more_is_no_training(void **state)
{
    struct launch_rate rate = {.before = so_far};

    note(&rate, (struct launch_counts){.launches = 550, .lone = 60});
    for (unsigned looks = 0; looks < 1000; looks++)
        note(&rate, (struct launch_counts){0});
    assert_false(launch_rate_is_training(&rate));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_computes_between_launches_and_waits_for_few),
        cmocka_unit_test(a_client_that_waits_for_launches_is_no_training),
        cmocka_unit_test(a_client_that_queues_launches_is_no_training),
        cmocka_unit_test(the_past_is_forgotten_slowly),
        cmocka_unit_test(a_client_that_launches_no_more_is_no_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
