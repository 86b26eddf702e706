/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes, and what operators make of a wish. */
#include "client_class.h"

#include "unit.h"

static void test_names(void **state)
{
    uint32_t class = 99;

    for (uint32_t known = CLASS_CRITICAL; known <= CLASS_BATCH; known++) {
        assert_true(client_class_parse(client_class_name(known), &class));
        assert_int_equal(class, known);
    }
    class = 99;
    assert_false(client_class_parse("", &class));
    assert_false(client_class_parse("Batch", &class));
    assert_false(client_class_parse("batch ", &class));
    assert_int_equal(class, 99);
    assert_string_equal(client_class_name(CLASS_UNSET), "normal");
    assert_string_equal(client_class_name(UINT32_MAX), "normal");
}

static void test_a_wish(void **state)
{
    assert_int_equal(client_class_bound(CLASS_UNSET, CLASS_UNSET), CLASS_NORMAL);
    assert_int_equal(client_class_bound(CLASS_CRITICAL, CLASS_UNSET), CLASS_CRITICAL);
    assert_int_equal(client_class_bound(CLASS_BATCH, CLASS_UNSET), CLASS_BATCH);
    assert_int_equal(client_class_bound(UINT32_MAX, CLASS_UNSET), CLASS_NORMAL);
}

static void test_classes_that_operators_set(void **state)
{
    assert_int_equal(client_class_bound(CLASS_UNSET, CLASS_CRITICAL), CLASS_CRITICAL);
    assert_int_equal(client_class_bound(CLASS_NORMAL, CLASS_CRITICAL), CLASS_NORMAL);
    assert_int_equal(client_class_bound(CLASS_CRITICAL, CLASS_NORMAL), CLASS_NORMAL);
    assert_int_equal(client_class_bound(CLASS_CRITICAL, CLASS_BATCH), CLASS_BATCH);
    assert_int_equal(client_class_bound(UINT32_MAX, CLASS_BATCH), CLASS_BATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_wish),
        cmocka_unit_test(test_classes_that_operators_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
