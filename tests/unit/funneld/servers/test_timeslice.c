/* SPDX-License-Identifier: Apache-2.0 */
/* Which time slices servers get. */
#include "timeslice.h"

#include "unit.h"

static void test_none_is_given(void **state)
{
    assert_int_equal(timeslice_of(0, 0, 5), 0);
}

static void test_percentages(void **state)
{
    assert_int_equal(timeslice_of(75, 100, 0), 7500);
    assert_int_equal(timeslice_of(25, 100, 0), 2500);
    assert_int_equal(timeslice_of(1, 1, 0), 100);
}

static void test_others_share_the_rest(void **state)
{
    assert_int_equal(timeslice_of(0, 40, 1), 6000);
    assert_int_equal(timeslice_of(0, 40, 3), 2000);
}

/* A slice of 0 would starve a server. */
static void test_none_starves(void **state)
{
    assert_int_equal(timeslice_of(0, 100, 1), 100);
    assert_int_equal(timeslice_of(0, 250, 7), 100);
    assert_int_equal(timeslice_of(0, 40, 1000), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_given),
        cmocka_unit_test(test_percentages),
        cmocka_unit_test(test_others_share_the_rest),
        cmocka_unit_test(test_none_starves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
