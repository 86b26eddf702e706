/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <time.h>

#include "clock.h"
#include "cupti_clock.h"

#define PER_NS 1000u
#define AGO (20 * NS_PER_MS)

static uint64_t count_cycles(void)
{
    return clock_ns() * PER_NS;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* With a wrong rate the time would be wrong by nearly AGO, or more. */
static void times_are_in_the_clock_of_the_program(void **state)
{
    uint64_t began = clock_ns(), at;

    cupti_clock_set(count_cycles);
    while (clock_ns() < began + 2 * AGO)
        continue;
    at = clock_ns() - AGO;
    assert_true(difference(cupti_clock_at(at), at * PER_NS) < AGO / 2 * PER_NS);
    assert_true(cupti_clock_now() > at * PER_NS);
}

static void without_one_times_are_those_of_the_day(void **state)
{
    struct timespec now;

    cupti_clock_set(NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    assert_true(difference(cupti_clock_now(), (uint64_t)now.tv_sec * NS_PER_SEC) <
                600 * NS_PER_SEC);
    assert_true(difference(cupti_clock_at(clock_ns()), (uint64_t)now.tv_sec * NS_PER_SEC) <
                600 * NS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_in_the_clock_of_the_program),
        cmocka_unit_test(without_one_times_are_those_of_the_day),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
