/* SPDX-License-Identifier: Apache-2.0 */
/* Help is found by the words that ask for it; completion knows commands of both versions and
 * options. */
#include "command_help.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static unsigned lines;
static bool found;

static void count(void *context, const char *text)
{
    lines++;
}

static bool asks(char *first, char *second, char *third)
{
    char *words[] = {first, second, third};
    int number = !second ? 1 : !third ? 2 : 3;

    lines = 0;
    return command_help(words, number, count, NULL, &found);
}

static void test_questions_for_help(void **state)
{
    assert_true(asks("help", NULL, NULL) && found && lines > 50);
    assert_true(asks("help", "server", "create") && found && lines == 6);
    assert_true(asks("server", "create", "help") && found && lines == 6);
    assert_true(asks("ps", "--help", NULL) && found);
    assert_true(asks("help", "nonsense", NULL) && !found && lines == 1);
    assert_false(asks("ps", "help", NULL));
    assert_false(asks("nonsense", "help", NULL));
    assert_false(asks("server", "list", NULL));
}

static void check_completion(const char *before, const char *text, unsigned nth,
                             const char *expected)
{
    char *word = command_complete(before, text, nth);

    if (expected)
        assert_string_equal(word, expected);
    else
        assert_null(word);
    free(word);
}

static void test_completion(void **state)
{
    check_completion("", "term", 0, "terminate_client");
    check_completion("", "serv", 0, "server");
    check_completion("", "serv", 1, NULL);
    check_completion("server ", "", 0, "list");
    check_completion("server ", "", 4, "delete");
    check_completion("server ", "", 5, NULL);
    check_completion("server create ", "--u", 0, "--uid=");
    check_completion("server create x ", "--l", 0, "--locality-domains=");
    check_completion("server delete x ", "-", 0, "--force");
    check_completion("server create ", "--nothing", 0, NULL);
    check_completion("nonsense ", "", 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions_for_help),
        cmocka_unit_test(test_completion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
