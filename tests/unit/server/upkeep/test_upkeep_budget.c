/* SPDX-License-Identifier: Apache-2.0 */
/* For how much of the time upkeep may suspend clients that work. */
#include "upkeep_budget.h"

#include "clock.h"
#include "unit.h"

#define BEGIN (100 * NS_PER_SEC)
#define LOOK_NS (100 * NS_PER_MS)

static bool allows(struct upkeep_budget *budget, uint64_t now)
{
    return upkeep_budget_allows(budget, now, true);
}

static void a_server_may_begin_at_once(void **state)
{
    struct upkeep_budget budget = {0};

    assert_true(allows(&budget, BEGIN));
}

static void a_suspension_is_followed_by_nine_times_its_length(void **state)
{
    struct upkeep_budget budget = {0};

    assert_true(allows(&budget, BEGIN));
    upkeep_budget_spend(&budget, 30 * NS_PER_MS);
    assert_false(allows(&budget, BEGIN + 30 * NS_PER_MS));
    assert_false(allows(&budget, BEGIN + 200 * NS_PER_MS));
    assert_true(allows(&budget, BEGIN + 201 * NS_PER_MS));
}

/* Steps of a millisecond, as many as are allowed in each look. Returns their time. */
static uint64_t spend_all(struct upkeep_budget *budget, unsigned looks)
{
    uint64_t spent = 0;

    for (unsigned i = 0; i < looks; i++) {
        uint64_t now = BEGIN + i * LOOK_NS;

        for (; allows(budget, now); now += NS_PER_MS, spent += NS_PER_MS)
            upkeep_budget_spend(budget, NS_PER_MS);
    }
    return spent;
}

static void steps_take_a_tenth_of_the_time(void **state)
{
    struct upkeep_budget budget = {0};

    assert_in_range(spend_all(&budget, 50), 495 * NS_PER_MS, 515 * NS_PER_MS);
}

static void time_without_upkeep_is_not_saved(void **state)
{
    struct upkeep_budget budget = {0};

    assert_true(allows(&budget, BEGIN));
    assert_true(allows(&budget, BEGIN + 3600 * NS_PER_SEC));
    upkeep_budget_spend(&budget, 10 * NS_PER_MS);
    assert_false(allows(&budget, BEGIN + 3600 * NS_PER_SEC));
}

static void where_none_works_all_is_allowed(void **state)
{
    struct upkeep_budget budget = {0};

    for (unsigned i = 0; i < 100; i++) {
        assert_true(upkeep_budget_allows(&budget, BEGIN + i, false));
        upkeep_budget_spend(&budget, 30 * NS_PER_MS);
    }
    assert_false(allows(&budget, BEGIN + 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_may_begin_at_once),
        cmocka_unit_test(a_suspension_is_followed_by_nine_times_its_length),
        cmocka_unit_test(steps_take_a_tenth_of_the_time),
        cmocka_unit_test(time_without_upkeep_is_not_saved),
        cmocka_unit_test(where_none_works_all_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
