/* SPDX-License-Identifier: Apache-2.0 */
/* Text in fixed arrays is always ended, and numbers are whole or refused. */
#include "text.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void test_copy(void **state)
{
    char target[5] = "....";
    assert_true(text_copy(target, sizeof(target), "four"));
    assert_string_equal(target, "four");
    assert_false(text_copy(target, sizeof(target), "fives"));
    assert_string_equal(target, "five");
    assert_false(text_copy(target, 0, "x"));
    assert_string_equal(target, "five");
}

static void test_format(void **state)
{
    char target[5];
    assert_true(text_format(target, sizeof(target), "%d", 1234));
    assert_string_equal(target, "1234");
    assert_false(text_format(target, sizeof(target), "%d", 12345));
    assert_string_equal(target, "1234");
}

static void test_ended(void **state)
{
    const char text[4] = {'a', 'b', 'c', '\0'};
    assert_true(text_ended(text, 4));
    assert_false(text_ended(text, 3));
    assert_false(text_ended(text, 0));
}

static void test_starts_with(void **state)
{
    assert_true(text_starts_with("CUDA_MPS", "CUDA"));
    assert_true(text_starts_with("CUDA", ""));
    assert_false(text_starts_with("CU", "CUDA"));
}

static void assert_number(const char *text, uint64_t expected)
{
    uint64_t value = 0;
    assert_int_equal(text_to_u64(text, &value), 0);
    assert_int_equal(value, expected);
}

static void assert_refused(const char *text, int error)
{
    uint64_t value = 42;
    assert_int_equal(text_to_u64(text, &value), error);
    assert_int_equal(value, 42);
}

static void test_numbers(void **state)
{
    assert_number("0", 0);
    assert_number("010", 10);
    assert_number("0x1F", 31);
    assert_number("18446744073709551615", UINT64_MAX);
    assert_refused("18446744073709551616", -ERANGE);
    assert_refused("", -EINVAL);
    assert_refused("-1", -EINVAL);
    assert_refused(" 1", -EINVAL);
    assert_refused("1 ", -EINVAL);
    assert_refused("0x", -EINVAL);
    assert_refused("0x+1", -EINVAL);
    assert_refused("1e3", -EINVAL);
}

static const char *printable(const char *raw)
{
    static char text[64];

    strcpy(text, raw);
    text_make_printable(text);
    return text;
}

static void test_make_printable(void **state)
{
    char array[4] = {'a', 27, 'b', 'c'};

    (void)state;
    assert_string_equal(printable("python3 tr\xc3\xa4umen \xe2\x82\xac \xf0\x9f\x9a\x80"),
                        "python3 tr\xc3\xa4umen \xe2\x82\xac \xf0\x9f\x9a\x80");
    assert_string_equal(printable("\033[2J\r\n\t\x7f"), "?[2J????");
    assert_string_equal(printable("\xc2\x9b"
                                  "2J"),
                        "??2J"); /* CSI in one character */
    assert_string_equal(printable("\x9b"
                                  "2J \xff \xc3"),
                        "?2J ? ?");                                    /* no UTF-8 */
    assert_string_equal(printable("\xc0\x9b \xe0\x80\x9b"), "?? ???"); /* longer than needed */
    assert_string_equal(printable("a\xe2\x80\xae"
                                  "b"),
                        "a???b");                          /* right to left */
    assert_string_equal(printable("\xed\xa0\x80"), "???"); /* half a character */
    text_make_printable_array(array, sizeof(array));
    assert_string_equal(array, "a?b");
}

static void test_make_lines_printable(void **state)
{
    char lines[] = "one\ttwo\n\n\033[2Jthree\nno\0end";

    text_make_lines_printable(lines, sizeof(lines) - 1);
    assert_string_equal(lines, "one\ttwo\n\n?[2Jthree\nno?end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_starts_with),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_make_printable),
        cmocka_unit_test(test_make_lines_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
