/* SPDX-License-Identifier: Apache-2.0 */
/* Whose kernel an assertion was in. */
#include "last_words.h"

#include "unit.h"

#define AT ": block: [0,0,0], thread: [1,0,0] Assertion `x > 0` failed.\n"

static void kernels_are_recognised(void **state)
{
    (void)state;
    assert_true(last_words_name("talk.cu:15: insist" AT, "insist"));
    assert_true(last_words_name("/a b/t.cu:15: void pick(int *, float)" AT, "_Z4pickPif"));
    assert_true(last_words_name("t.cu:1: void pick<int, 3>(int)" AT, "_Z4pickIiLi3EEvi"));
    assert_true(last_words_name("t.cu:1: void (anonymous namespace)::pick(int)" AT,
                                "_ZN52_GLOBAL__N__4pickEi"));
    assert_true(last_words_name("t.cu:1: other" AT "t.cu:2: pick" AT, "pick"));
}

static void others_are_not(void **state)
{
    (void)state;
    assert_false(last_words_name("talk.cu:15: insist" AT, "say"));
    assert_false(last_words_name("talk.cu:15: insist", "insist"));
    assert_false(last_words_name("", "insist"));
    assert_false(last_words_name(AT, "block"));
    assert_false(last_words_name(": " AT, "insist"));
    assert_false(last_words_name(": ()" AT, "insist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_recognised),
        cmocka_unit_test(others_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
