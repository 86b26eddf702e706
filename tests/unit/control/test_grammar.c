/* SPDX-License-Identifier: Apache-2.0 */
/* A grammar is parsed from the text of its help; a wrong argument is named and nothing is set. */
#include "grammar.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static char reason[GRAMMAR_REASON_MAX];

static int parse(const char *grammar, const char *arguments, struct grammar_values *ret_values)
{
    char line[256];
    char *words[GRAMMAR_WORDS_MAX];
    int count;

    strcpy(line, arguments);
    count = grammar_split(line, words);
    return grammar_parse("command", grammar, words, count, ret_values, reason);
}

static void test_split(void **state)
{
    char line[] = "  ps\t-p  12 \n";
    char many[] = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
    char *words[GRAMMAR_WORDS_MAX];

    assert_int_equal(grammar_split(line, words), 3);
    assert_string_equal(words[0], "ps");
    assert_string_equal(words[2], "12");
    assert_int_equal(grammar_split(many, words), -E2BIG);
}

static void test_positional_words(void **state)
{
    struct grammar_values values;

    assert_int_equal(parse("SERVER CLIENT", "12 34", &values), 0);
    assert_int_equal(values.server, 12);
    assert_int_equal(values.client, 34);
    assert_int_equal(parse("SERVER CLIENT", "12", &values), -EINVAL);
    assert_string_equal(reason, "Missing argument, usage: command SERVER CLIENT");
    assert_int_equal(parse("SERVER CLIENT", "12 34 56", &values), -EINVAL);
    assert_int_equal(parse("", "12", &values), -EINVAL);
    assert_int_equal(parse("", "", &values), 0);
}

static void test_optional_words(void **state)
{
    struct grammar_values values;

    assert_int_equal(parse("[PRIORITY]", "", &values), 0);
    assert_false(grammar_given(&values, GRAMMAR_PRIORITY));
    assert_int_equal(parse("[PRIORITY]", "1", &values), 0);
    assert_true(grammar_given(&values, GRAMMAR_PRIORITY));
    assert_int_equal(values.priority, 1);
}

static void test_options(void **state)
{
    struct grammar_values values;

    assert_int_equal(parse("-uid UID [-mlopart]", "-mlopart -uid 1000", &values), 0);
    assert_int_equal(values.uid, 1000);
    assert_true(values.mlopart);
    assert_int_equal(parse("-uid UID [-mlopart]", "-uid 0", &values), 0);
    assert_false(values.mlopart);
    assert_int_equal(parse("-uid UID", "", &values), -EINVAL);
    assert_int_equal(parse("-uid UID", "-uid", &values), -EINVAL);
    assert_int_equal(parse("-uid UID", "1000", &values), -EINVAL);
    assert_int_equal(parse("SERVER [-f]", "-f 12", &values), 0);
    assert_true(values.force);
    assert_int_equal(parse("SERVER [-f]", "12 -x", &values), -EINVAL);
    assert_int_equal(parse("SERVER [-f]", "12 -f -f", &values), -EINVAL);
    assert_int_equal(parse("[SERVER] [--csv]", "--csv", &values), 0);
    assert_true(values.csv);
    assert_int_equal(parse("DEVICE", "-x", &values), -EINVAL);
}

static void test_nothing_is_set_on_errors(void **state)
{
    struct grammar_values values = {.server = 7};

    assert_int_equal(parse("SERVER PERCENT", "12 x", &values), -EINVAL);
    assert_int_equal(values.server, 7);
}

static void test_percent(void **state)
{
    static const char *const wrong[] = {"", "0", "-1", "x", "nan", "inf", "10%", "1 "};
    uint32_t value = 7;

    assert_int_equal(grammar_percent("100", &value), 0);
    assert_int_equal(value, 10000);
    assert_int_equal(grammar_percent("33.5", &value), 0);
    assert_int_equal(value, 3350);
    assert_int_equal(grammar_percent("1e9", &value), 0);
    assert_int_equal(value, 10000);
    assert_int_equal(grammar_percent("0.0001", &value), 0);
    assert_int_equal(value, 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(grammar_percent(wrong[i], &value), -EINVAL);
    assert_int_equal(value, 1);
}

static void test_memory(void **state)
{
    static const char *const wrong[] = {"",
                                        "0G",
                                        "1",
                                        "G",
                                        "-1G",
                                        "1K",
                                        "1.5G",
                                        "1GG",
                                        "1 G",
                                        "17179869184G",
                                        "99999999999999999999999999G"};
    uint64_t value = 7;

    assert_int_equal(grammar_memory("2G", &value), 0);
    assert_true(value == 2ull << 30);
    assert_int_equal(grammar_memory("512MB", &value), 0);
    assert_true(value == 512ull << 20);
    assert_int_equal(grammar_memory("17179869183G", &value), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(grammar_memory(wrong[i], &value), -EINVAL);
    assert_true(value == 17179869183ull << 30);
}

static void test_memory_text(void **state)
{
    struct grammar_values values;

    assert_int_equal(parse("DEVICE MEMORY", "0 2048m", &values), 0);
    assert_string_equal(values.memory_text, "2048M");
    assert_int_equal(parse("DEVICE MEMORY", "0 1GB", &values), 0);
    assert_string_equal(values.memory_text, "1G");
}

static void test_messages(void **state)
{
    struct grammar_values values;

    parse("PRIORITY", "7", &values);
    assert_string_equal(reason, "Invalid priority value - must be 0 or 1!");
    parse("SERVER", "0", &values);
    assert_string_equal(reason, "Invalid value \"0\": expected the process id of a server");
}

/* Version 3 and Funnel's own command refuse what version 2 takes for 100. */
static void test_shares(void **state)
{
    struct grammar_values values;

    assert_int_equal(parse("SHARE", "100", &values), 0);
    assert_int_equal(values.centipercent, 10000);
    assert_int_equal(parse("SHARE", "0.5", &values), 0);
    assert_int_equal(values.centipercent, 50);
    assert_int_equal(parse("SHARE", "100.1", &values), -EINVAL);
    assert_int_equal(parse("SHARE", "none", &values), -EINVAL);
    assert_int_equal(parse("QUOTA", "none", &values), 0);
    assert_true(grammar_given(&values, GRAMMAR_QUOTA));
    assert_int_equal(values.centipercent, 0);
    assert_int_equal(parse("QUOTA", "101", &values), -EINVAL);
    assert_int_equal(parse("PERCENT", "101", &values), 0);
    assert_int_equal(values.centipercent, 10000);
    assert_int_equal(parse("PERCENT", "0x20", &values), -EINVAL);
}

/* An option of Funnel's is understood with one dash as well; a switch is not. */
static void test_options_with_one_dash(void **state)
{
    struct grammar_values values;

    assert_int_equal(parse("[--client CLIENT]", "--client 5", &values), 0);
    assert_int_equal(parse("[--client CLIENT]", "-client 5", &values), 0);
    assert_int_equal(values.client, 5);
    assert_int_equal(parse("[--client CLIENT]", "client 5", &values), -EINVAL);
    assert_int_equal(parse("NAME [--force]", "a -force", &values), -EINVAL);
    assert_int_equal(parse("[-client CLIENT]", "--client 5", &values), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),         cmocka_unit_test(test_options_with_one_dash),
        cmocka_unit_test(test_split),          cmocka_unit_test(test_positional_words),
        cmocka_unit_test(test_optional_words), cmocka_unit_test(test_options),
        cmocka_unit_test(test_percent),        cmocka_unit_test(test_nothing_is_set_on_errors),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_memory_text),
        cmocka_unit_test(test_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
