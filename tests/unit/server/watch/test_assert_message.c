/* SPDX-License-Identifier: Apache-2.0 */
/* In which kernel an assertion failed. */
#include "assert_message.h"

#include "unit.h"

#define AT ": block: [0,0,0], thread: [1,0,0] Assertion `x > 0` failed.\n"

static void kernels_are_recognized(void **state)
{
    (void)state;
    assert_true(assert_message_names("talk.cu:15: insist" AT, "insist"));
    assert_true(assert_message_names("/a b/t.cu:15: void pick(int *, float)" AT, "_Z4pickPif"));
    assert_true(assert_message_names("t.cu:1: void pick<int, 3>(int)" AT, "_Z4pickIiLi3EEvi"));
    assert_true(assert_message_names("t.cu:1: void (anonymous namespace)::pick(int)" AT,
                                     "_ZN52_GLOBAL__N__4pickEi"));
    assert_true(assert_message_names("t.cu:1: other" AT "t.cu:2: pick" AT, "pick"));
}

static void other_kernels_are_not(void **state)
{
    (void)state;
    assert_false(assert_message_names("talk.cu:15: insist" AT, "say"));
    assert_false(assert_message_names("talk.cu:15: insist", "insist"));
    assert_false(assert_message_names("", "insist"));
    assert_false(assert_message_names(AT, "block"));
    assert_false(assert_message_names(": " AT, "insist"));
    assert_false(assert_message_names(": ()" AT, "insist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_recognized),
        cmocka_unit_test(other_kernels_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
