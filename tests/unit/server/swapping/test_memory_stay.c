/* SPDX-License-Identifier: Apache-2.0 */
/* How long memory stays on a device, and whose leaves first. */
#include "memory_stay.h"

#include "client_class.h"
#include "clock.h"
#include "unit.h"

#define GIB (1ull << 30)
#define MOST (60 * NS_PER_SEC)

static void test_the_quantum(void **state)
{
    struct stay_pace pace = {.factor = 1};
    struct memory_stay known = {.back_ns = NS_PER_SEC}, unknown = {0};

    assert_true(memory_stay_quantum(&pace, &known, GIB, false, MOST) == 8 * NS_PER_SEC);
    pace.factor = 4;
    assert_true(memory_stay_quantum(&pace, &known, GIB, false, MOST) == 32 * NS_PER_SEC);
    assert_true(memory_stay_quantum(&pace, &known, GIB, true, MOST) == 8 * NS_PER_SEC);
    assert_true(memory_stay_quantum(&pace, &known, GIB, false, NS_PER_SEC) == NS_PER_SEC);
    pace = (struct stay_pace){.factor = 1, .bytes = GIB, .ns = NS_PER_SEC};
    assert_true(memory_stay_quantum(&pace, &unknown, 2 * GIB, false, MOST) == 16 * NS_PER_SEC);
    assert_true(memory_stay_quantum(&pace, &unknown, 0, false, MOST) == 200 * NS_PER_MS);
}

static void test_the_pace(void **state)
{
    struct stay_pace pace = {.factor = 1};
    struct memory_stay stay = {0};
    uint64_t now = clock_ns();

    assert_false(memory_stay_returns(&pace, &stay, GIB, 1, now, MOST));
    for (unsigned factor = 2; factor <= STAY_PACE_MAX; factor *= 2) {
        stay.left_at = now;
        pace.grown_at = 0;
        assert_true(memory_stay_returns(&pace, &stay, GIB, 1, now + 5, 10));
        assert_int_equal(pace.factor, factor);
    }
    stay.left_at = now;
    pace.grown_at = 0;
    assert_false(memory_stay_returns(&pace, &stay, GIB, 1, now + 5, 10));
    stay.left_at = now;
    pace.thrashed_at = 0;
    assert_true(memory_stay_returns(&pace, &stay, GIB, 1, now + 20, 10));
    assert_int_equal(pace.factor, STAY_PACE_MAX / 2);
    stay.left_at = now;
    assert_false(memory_stay_returns(&pace, &stay, GIB, 1, now + 20 * MOST, MOST));
}

static void test_whose_memory_leaves(void **state)
{
    const struct resident idle = {CLASS_NORMAL, true, 4 * GIB, 100},
                          longer = {CLASS_NORMAL, true, 4 * GIB, 200},
                          larger = {CLASS_NORMAL, true, 16 * GIB, 200},
                          busy = {CLASS_NORMAL, false, 4 * GIB, 900},
                          batch = {CLASS_BATCH, false, GIB, 1},
                          rest = {CLASS_NORMAL, true, GIB / 4, 1, true};

    assert_true(resident_leaves_before(&rest, &batch, GIB));
    assert_false(resident_leaves_before(&longer, &rest, GIB));
    assert_true(resident_leaves_before(&longer, &idle, GIB));
    assert_true(resident_leaves_before(&idle, &larger, GIB));
    assert_true(resident_leaves_before(&larger, &longer, 8 * GIB));
    assert_true(resident_leaves_before(&larger, &longer, 32 * GIB));
    assert_true(resident_leaves_before(&idle, &busy, GIB));
    assert_true(resident_leaves_before(&batch, &idle, GIB));
    assert_false(resident_leaves_before(&idle, &batch, GIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_quantum),
        cmocka_unit_test(test_the_pace),
        cmocka_unit_test(test_whose_memory_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
