/* SPDX-License-Identifier: Apache-2.0 */
#include "occupancy_cache.h"

#include "unit.h"

static const struct occupancy_question common = {.block_size = 128, .shared = 1024};

static bool is_known(const struct occupancy_cache *cache, struct occupancy_question question,
                     int expected)
{
    int blocks;

    return occupancy_cache_find(cache, &question, &blocks) && blocks == expected;
}

static void keep(struct occupancy_cache *cache, struct occupancy_question question, int blocks)
{
    occupancy_cache_keep(cache, occupancy_cache_version(cache), &question, blocks);
}

static void an_answer_is_known_to_its_question_alone(void **state)
{
    struct occupancy_cache cache = {0};

    assert_false(is_known(&cache, common, 0));
    keep(&cache, common, 16);
    assert_true(is_known(&cache, common, 16));
    assert_false(is_known(&cache, (struct occupancy_question){128, 1025, 0}, 16));
    assert_false(is_known(&cache, (struct occupancy_question){129, 1024, 0}, 16));
    assert_false(is_known(&cache, (struct occupancy_question){128, 1024, 1}, 16));
    assert_false(is_known(&cache, (struct occupancy_question){0}, 0));
}

static void a_kernel_that_does_not_fit_is_known_as_well(void **state)
{
    struct occupancy_cache cache = {0};
    const struct occupancy_question large = {.block_size = 1024, .shared = 200 << 10};

    keep(&cache, large, 0);
    assert_true(is_known(&cache, large, 0));
}

static void a_change_of_the_kernel_forgets_answers(void **state)
{
    struct occupancy_cache cache = {0};

    keep(&cache, common, 16);
    occupancy_cache_clear(&cache);
    assert_false(is_known(&cache, common, 16));
}

/* The driver was asked before the change, and answers after it. */
static void an_answer_of_an_older_kernel_is_not_kept(void **state)
{
    struct occupancy_cache cache = {0};
    uint32_t version = occupancy_cache_version(&cache);

    occupancy_cache_clear(&cache);
    occupancy_cache_keep(&cache, version, &common, 16);
    assert_false(is_known(&cache, common, 16));
    keep(&cache, common, 8);
    assert_true(is_known(&cache, common, 8));
}

static void a_value_without_an_entry_is_asked_again(void **state)
{
    const struct {
        struct occupancy_question question;
        int blocks;
    } cases[] = {
        {{1 << 14, 0, 0}, 1}, {{32, (size_t)1 << 32, 0}, 1},
        {{32, 0, 2}, 1},      {{32, 0, 0}, 256},
        {{32, 0, 0}, -1},     {{-32, 0, 0}, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct occupancy_cache cache = {0};
        keep(&cache, cases[i].question, cases[i].blocks);
        assert_false(is_known(&cache, cases[i].question, cases[i].blocks));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_known_to_its_question_alone),
        cmocka_unit_test(a_kernel_that_does_not_fit_is_known_as_well),
        cmocka_unit_test(a_change_of_the_kernel_forgets_answers),
        cmocka_unit_test(an_answer_of_an_older_kernel_is_not_kept),
        cmocka_unit_test(a_value_without_an_entry_is_asked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
