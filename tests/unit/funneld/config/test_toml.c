/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of configuration files: what it hands out, and what it refuses. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "toml.h"

static char parsed[1024];

static int take(void *context, const struct toml_item *item, char reason[TOML_REASON_MAX])
{
    size_t used = strlen(parsed);

    for (unsigned i = 0; !item->key && i < item->table->depth; i++)
        used += (size_t)snprintf(parsed + used, sizeof(parsed) - used, "/%s", item->table->part[i]);
    if (item->key)
        used += (size_t)snprintf(parsed + used, sizeof(parsed) - used, " %s=%s", item->key,
                                 item->value);
    if (item->element)
        snprintf(parsed + used, sizeof(parsed) - used, "*");
    if (item->key && !strcmp(item->key, "bad"))
        snprintf(reason, TOML_REASON_MAX, "bad is bad");
    return *reason ? -1 : 0;
}

static int read_text(const char *text, char reason[TOML_REASON_MAX])
{
    parsed[0] = '\0';
    return toml_read(text, take, NULL, reason);
}

static void test_read(void **state)
{
    char reason[TOML_REASON_MAX];

    assert_int_equal(read_text("", reason), 0);
    assert_string_equal(parsed, "");
    assert_int_equal(read_text("a=1# x\r\n[t.'u v']\nb = \"x\\\"y#\" # c\n", reason), 0);
    assert_string_equal(parsed, " a=1/t/u v b=x\"y#");
    assert_int_equal(read_text("l=[\n1, # one\n'two',\n]\nm=[]", reason), 0);
    assert_string_equal(parsed, " l=1,two m=");
    assert_int_equal(read_text("[[t]]\na=true\n[[t]]\na=-1.5", reason), 0);
    assert_string_equal(parsed, "/t* a=true*/t* a=-1.5*");
}

static void test_refused(void **state)
{
    static const char *const wrong[] = {"a",        "a=",       "a=b",       "a=1 2",   "a=\"x",
                                        "a=[1",     "a=[1 2]",  "[t",        "[[t]",    "[]",
                                        "[t]\n[t]", "a=1\na=2", "a=\"\\n\"", "a='x\n'", "a.b=1",
                                        "=1",       "[t] x",    "a=[[1]]",   "a={b=1}", "bad=1"};
    char reason[TOML_REASON_MAX];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        reason[0] = '\0';
        if (!read_text(wrong[i], reason))
            fail_msg("accepted: %s", wrong[i]);
        assert_memory_equal(reason, "line ", 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
