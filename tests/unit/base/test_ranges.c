/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges: borders, refusals, and random changes against a byte map that holds the truth. */
#include "ranges.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void test_borders(void **state)
{
    struct ranges ranges;
    int value;
    ranges_init(&ranges);
    assert_int_equal(ranges_add(&ranges, 100, 10, &value), 0);
    assert_null(ranges_find(&ranges, 99));
    assert_ptr_equal(ranges_find(&ranges, 100)->value, &value);
    assert_int_equal(ranges_find(&ranges, 109)->start, 100);
    assert_null(ranges_find(&ranges, 110));
    ranges_fini(&ranges);
}

static void test_neighbours_may_touch_but_not_overlap(void **state)
{
    struct ranges ranges = {0};
    assert_int_equal(ranges_add(&ranges, 100, 10, NULL), 0);
    assert_int_equal(ranges_add(&ranges, 90, 10, NULL), 0);
    assert_int_equal(ranges_add(&ranges, 110, 10, NULL), 0);
    assert_int_equal(ranges_add(&ranges, 100, 10, NULL), -EEXIST);
    assert_int_equal(ranges_add(&ranges, 105, 1, NULL), -EEXIST);
    assert_int_equal(ranges_add(&ranges, 80, 11, NULL), -EEXIST);
    assert_int_equal(ranges_add(&ranges, 0, 1000, NULL), -EEXIST);
    assert_int_equal(ranges_add(&ranges, 119, 10, NULL), -EEXIST);
    assert_int_equal(ranges.count, 3);
    ranges_fini(&ranges);
}

static void test_ends_of_the_address_space(void **state)
{
    struct ranges ranges = {0};
    assert_int_equal(ranges_add(&ranges, 5, 0, NULL), -EINVAL);
    assert_int_equal(ranges_add(&ranges, UINT64_MAX, 2, NULL), -EINVAL);
    assert_int_equal(ranges_add(&ranges, 1, UINT64_MAX, NULL), 0);
    assert_non_null(ranges_find(&ranges, UINT64_MAX));
    assert_null(ranges_find(&ranges, 0));
    assert_int_equal(ranges_add(&ranges, UINT64_MAX, 1, NULL), -EEXIST);
    ranges_fini(&ranges);
}

static void test_remove_wants_the_start(void **state)
{
    struct ranges ranges = {0};
    struct range removed = {0};
    int value;
    assert_int_equal(ranges_add(&ranges, 100, 10, &value), 0);
    assert_int_equal(ranges_remove(&ranges, 101, &removed), -ENOENT);
    assert_int_equal(removed.size, 0);
    assert_int_equal(ranges_remove(&ranges, 100, &removed), 0);
    assert_int_equal(removed.size, 10);
    assert_ptr_equal(removed.value, &value);
    assert_int_equal(ranges_remove(&ranges, 100, NULL), -ENOENT);
    ranges_fini(&ranges);
}

#define SPACE 2000u

/* truth[a] = start of the range that holds a, plus 1; 0 = none. */
static bool is_free(const uint32_t *truth, uint32_t start, uint32_t size)
{
    for (uint32_t a = start; a < start + size; a++)
        if (truth[a])
            return false;
    return true;
}

static void mark(uint32_t *truth, uint32_t start, uint32_t size, uint32_t mark)
{
    for (uint32_t a = start; a < start + size; a++)
        truth[a] = mark;
}

static void assert_same(const struct ranges *ranges, const uint32_t *truth)
{
    for (uint32_t a = 0; a < SPACE; a++) {
        const struct range *range = ranges_find(ranges, a);
        assert_int_equal(range ? range->start + 1 : 0, truth[a]);
    }
    size_t count = 0;
    const struct range *range = ranges_next(ranges, 0);
    for (; range; range = ranges_next(ranges, range->start + 1))
        count++;
    assert_int_equal(count, ranges->count);
}

static void test_random_changes(void **state)
{
    static uint32_t truth[SPACE];
    struct ranges ranges = {0};
    struct range removed;
    uint64_t random = 2;
    for (int round = 0; round < 20000; round++) {
        uint32_t size = 1 + unit_random(&random) % 20;
        uint32_t start = unit_random(&random) % (SPACE - size);
        if (unit_random(&random) % 2) {
            int expected = is_free(truth, start, size) ? 0 : -EEXIST;
            assert_int_equal(ranges_add(&ranges, start, size, NULL), expected);
            if (expected == 0)
                mark(truth, start, size, start + 1);
        } else if (truth[start]) {
            start = truth[start] - 1;
            assert_int_equal(ranges_remove(&ranges, start, &removed), 0);
            mark(truth, start, (uint32_t)removed.size, 0);
        }
        if (round % 500 == 0)
            assert_same(&ranges, truth);
    }
    assert_same(&ranges, truth);
    ranges_fini(&ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_neighbours_may_touch_but_not_overlap),
        cmocka_unit_test(test_ends_of_the_address_space),
        cmocka_unit_test(test_remove_wants_the_start),
        cmocka_unit_test(test_random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
