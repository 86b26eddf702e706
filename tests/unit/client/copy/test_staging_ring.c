/* SPDX-License-Identifier: Apache-2.0 */
/* Which staging slot is taken next, and who has to wait for it. */
#include "unit.h"

#include "staging_ring.h"

static uint32_t reached;

/* Fences of word 0 pass in order; those of word 1 never do. */
static bool passed(struct fence fence)
{
    return fence.word == 0 && fence_reached(reached, fence.seq);
}

static void test_all_slots_are_handed_out_once(void **state)
{
    struct staging_ring ring = {.count = 4};
    bool must_wait, seen[4] = {false};
    unsigned slot;

    for (int i = 0; i < 4; i++) {
        assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
        assert_false(must_wait);
        assert_false(seen[slot]);
        seen[slot] = true;
    }
    assert_false(staging_ring_take(&ring, passed, &slot, &must_wait));
    staging_ring_give(&ring, 2, NULL);
    assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
    assert_int_equal(slot, 2);
}

static void test_a_ready_slot_goes_before_an_older_busy_one(void **state)
{
    struct staging_ring ring = {.count = 3};
    bool must_wait;
    unsigned slot;

    reached = 5;
    for (int i = 0; i < 3; i++)
        assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
    staging_ring_give(&ring, 0, &(struct fence){1, 1});
    staging_ring_give(&ring, 1, &(struct fence){0, 5});
    assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
    assert_int_equal(slot, 1);
    assert_false(must_wait);
}

static void test_without_a_ready_slot_the_oldest_is_waited_for(void **state)
{
    struct staging_ring ring = {.count = 2};
    bool must_wait;
    unsigned slot;

    reached = 0;
    for (int i = 0; i < 2; i++)
        assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
    staging_ring_give(&ring, 0, &(struct fence){0, 1});
    staging_ring_give(&ring, 1, &(struct fence){0, 2});
    assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
    assert_int_equal(slot, 0);
    assert_true(must_wait);
    assert_true(staging_ring_take(&ring, passed, &slot, &must_wait));
    assert_int_equal(slot, 1);
    assert_true(must_wait);
}

static void test_fences_compare_across_the_wrap(void **state)
{
    assert_true(fence_reached(5, 5));
    assert_true(fence_reached(6, 5));
    assert_false(fence_reached(4, 5));
    assert_true(fence_reached(3, UINT32_MAX));
    assert_false(fence_reached(UINT32_MAX, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_slots_are_handed_out_once),
        cmocka_unit_test(test_a_ready_slot_goes_before_an_older_busy_one),
        cmocka_unit_test(test_without_a_ready_slot_the_oldest_is_waited_for),
        cmocka_unit_test(test_fences_compare_across_the_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
