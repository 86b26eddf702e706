/* SPDX-License-Identifier: Apache-2.0 */
#include "first_times.h"

#include <stdio.h>

#include "unit.h"

static void test_once_each(void **state)
{
    struct first_times times = FIRST_TIMES_INIT;
    char copy[] = "cuInit";

    assert_true(first_time(&times, "cuInit", 1));
    assert_false(first_time(&times, copy, 1));
    assert_true(first_time(&times, "cuInit", 2));
    assert_true(first_time(&times, "cuCtxCreate", 1));
    assert_false(first_time(&times, "cuCtxCreate", 1));
}

static void test_full(void **state)
{
    struct first_times times = FIRST_TIMES_INIT;

    for (int i = 0; i < FIRST_TIMES_MAX; i++)
        assert_true(first_time(&times, "cuInit", i));
    assert_false(first_time(&times, "cuInit", FIRST_TIMES_MAX));
    assert_false(first_time(&times, "cuInit", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_each),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
