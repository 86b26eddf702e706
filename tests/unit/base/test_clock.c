/* SPDX-License-Identifier: Apache-2.0 */
/* The clock goes forward, and agrees with the kernel about its unit. */
#include "clock.h"

#include <time.h>

#include "unit.h"

static void test_never_goes_back(void **state)
{
    uint64_t before = clock_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_ns();
        assert_true(now >= before);
        before = now;
        cpu_relax();
    }
}

static void test_is_monotonic_clock_in_nanoseconds(void **state)
{
    struct timespec first, last;
    clock_gettime(CLOCK_MONOTONIC, &first);
    uint64_t now = clock_ns();
    clock_gettime(CLOCK_MONOTONIC, &last);
    assert_true(now >= (uint64_t)first.tv_sec * NS_PER_SEC + (uint64_t)first.tv_nsec);
    assert_true(now <= (uint64_t)last.tv_sec * NS_PER_SEC + (uint64_t)last.tv_nsec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_goes_back),
        cmocka_unit_test(test_is_monotonic_clock_in_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
