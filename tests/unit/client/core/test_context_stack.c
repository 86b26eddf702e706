/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of current contexts: replacing the top is not pushing. */
#include "unit.h"

#include "context_stack.h"

#define CONTEXT(n) ((CUcontext)(uintptr_t)(n))

static void test_an_empty_stack_has_no_top(void **state)
{
    struct context_stack stack = {0};

    assert_null(context_stack_top(&stack));
    assert_null(context_stack_pop(&stack));
    assert_int_equal(context_stack_replace(&stack, NULL), 0);
    assert_int_equal(stack.depth, 0);
}

static void test_last_in_first_out(void **state)
{
    struct context_stack stack = {0};

    for (uintptr_t i = 1; i <= 100; i++)
        assert_int_equal(context_stack_push(&stack, CONTEXT(i)), 0);
    for (uintptr_t i = 100; i >= 1; i--)
        assert_ptr_equal(context_stack_pop(&stack), CONTEXT(i));
    assert_null(context_stack_pop(&stack));
    context_stack_clear(&stack);
}

static void test_replace_keeps_what_lies_below(void **state)
{
    struct context_stack stack = {0};

    assert_int_equal(context_stack_push(&stack, CONTEXT(1)), 0);
    assert_int_equal(context_stack_push(&stack, CONTEXT(2)), 0);
    assert_int_equal(context_stack_replace(&stack, CONTEXT(3)), 0);
    assert_ptr_equal(context_stack_top(&stack), CONTEXT(3));
    assert_int_equal(stack.depth, 2);
    assert_int_equal(context_stack_replace(&stack, NULL), 0);
    assert_ptr_equal(context_stack_top(&stack), CONTEXT(1));
    context_stack_clear(&stack);
}

static void test_replace_on_an_empty_stack_pushes(void **state)
{
    struct context_stack stack = {0};

    assert_int_equal(context_stack_replace(&stack, CONTEXT(1)), 0);
    assert_int_equal(stack.depth, 1);
    context_stack_clear(&stack);
    assert_null(context_stack_top(&stack));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_stack_has_no_top),
        cmocka_unit_test(test_last_in_first_out),
        cmocka_unit_test(test_replace_keeps_what_lies_below),
        cmocka_unit_test(test_replace_on_an_empty_stack_pushes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
