/* SPDX-License-Identifier: Apache-2.0 */
/* Names of isolations. */
#include "isolation.h"

#include "unit.h"

static void test_names(void **state)
{
    uint32_t isolation = 99;

    for (uint32_t known = ISOLATION_NONE; known <= ISOLATION_PROGRAM; known++) {
        assert_true(isolation_parse(isolation_name(known), &isolation));
        assert_int_equal(isolation, known);
    }
    isolation = 99;
    assert_false(isolation_parse("", &isolation));
    assert_false(isolation_parse("New", &isolation));
    assert_false(isolation_parse("programs", &isolation));
    assert_int_equal(isolation, 99);
    assert_string_equal(isolation_name(ISOLATION_UNSET), "none");
    assert_string_equal(isolation_name(UINT32_MAX), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
