/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as on, and that the environment is read once where that is asked for. */
#include "switch.h"

#include <stdlib.h>

#include "unit.h"

static bool is_on_with(const char *value)
{
    setenv("FUNNEL_TEST_SWITCH", value, 1);
    return switch_is_on("FUNNEL_TEST_SWITCH");
}

static void test_switches_that_are_on(void **state)
{
    unsetenv("FUNNEL_TEST_SWITCH");
    assert_false(switch_is_on("FUNNEL_TEST_SWITCH"));
    assert_false(is_on_with(""));
    assert_false(is_on_with("0"));
    assert_true(is_on_with("1"));
    assert_true(is_on_with("00"));
    assert_true(is_on_with("yes"));
}

static void test_read_once(void **state)
{
    _Atomic int on = 0, off = 0;

    setenv("FUNNEL_TEST_SWITCH", "1", 1);
    assert_true(switch_is_on_once(&on, "FUNNEL_TEST_SWITCH"));
    unsetenv("FUNNEL_TEST_SWITCH");
    assert_true(switch_is_on_once(&on, "FUNNEL_TEST_SWITCH"));
    assert_false(switch_is_on_once(&off, "FUNNEL_TEST_SWITCH"));
    setenv("FUNNEL_TEST_SWITCH", "1", 1);
    assert_false(switch_is_on_once(&off, "FUNNEL_TEST_SWITCH"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switches_that_are_on),
        cmocka_unit_test(test_read_once),
    };

    return cmocka_run_group_tests_name("switch", tests, NULL, NULL);
}
