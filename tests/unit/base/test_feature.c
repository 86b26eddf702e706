/* SPDX-License-Identifier: Apache-2.0 */
/* Which names FUNNEL_OFF switches off, and what the log says of the others. */
#include "feature.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static bool is_off_with(const char *list, enum feature feature)
{
    setenv("FUNNEL_OFF", list, 1);
    return feature_is_off(feature);
}

static void test_names_in_the_list(void **state)
{
    unsetenv("FUNNEL_OFF");
    assert_false(feature_is_off(FEATURE_SPIN));
    assert_false(is_off_with("", FEATURE_SPIN));
    assert_true(is_off_with("spin", FEATURE_SPIN));
    assert_true(is_off_with("recovery,spin", FEATURE_SPIN));
    assert_true(is_off_with(" recovery, spin ,,sandbox", FEATURE_SPIN));
    assert_true(is_off_with("recovery,spin,sandbox", FEATURE_SANDBOX));
}

static void test_whole_names_only(void **state)
{
    assert_false(is_off_with("short-spin", FEATURE_SPIN));
    assert_false(is_off_with("spin", FEATURE_SHORT_SPIN));
    assert_false(is_off_with("spinning,spi,SPIN,1", FEATURE_SPIN));
}

static void test_unknown_names_are_told(void **state)
{
    char message[512];

    setenv("FUNNEL_OFF", "recovery,hurry,spin,unknown", 1);
    assert_true(feature_complaint(message, sizeof(message)));
    assert_non_null(strstr(message, ": hurry, unknown;"));
    setenv("FUNNEL_OFF", "recovery,spin", 1);
    assert_false(feature_complaint(message, sizeof(message)));
    unsetenv("FUNNEL_OFF");
    assert_false(feature_complaint(message, sizeof(message)));
}

static void test_a_long_list_is_cut(void **state)
{
    char list[4000], message[64];

    memset(list, 'x', sizeof(list) - 1);
    list[sizeof(list) - 1] = '\0';
    for (size_t i = 9; i < sizeof(list) - 1; i += 10)
        list[i] = ',';
    setenv("FUNNEL_OFF", list, 1);
    assert_true(feature_complaint(message, sizeof(message)));
    assert_int_equal(strnlen(message, sizeof(message)), sizeof(message) - 1);
}

static void test_read_once(void **state)
{
    setenv("FUNNEL_OFF", "spin", 1);
    assert_true(feature_is_off_once(FEATURE_SPIN));
    setenv("FUNNEL_OFF", "sandbox", 1);
    assert_true(feature_is_off_once(FEATURE_SPIN));
    assert_false(feature_is_off_once(FEATURE_SANDBOX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_the_list),
        cmocka_unit_test(test_whole_names_only),
        cmocka_unit_test(test_unknown_names_are_told),
        cmocka_unit_test(test_a_long_list_is_cut),
        cmocka_unit_test(test_read_once),
    };

    return cmocka_run_group_tests_name("feature", tests, NULL, NULL);
}
