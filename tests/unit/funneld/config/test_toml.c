/* SPDX-License-Identifier: Apache-2.0 */
/* The TOML parser: the tree of what is valid, and what is refused, after the rules of TOML 1.0. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "text.h"
#include "toml.h"

static char dump[2048];

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    size_t used = strlen(dump);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(dump + used, sizeof(dump) - used, format, arguments);
    va_end(arguments);
}

/* {key:value ...}, [value ...], and scalars with a letter of their type before them. */
static void put_value(const struct toml *value)
{
    static const char letters[] = "{[sifbDdyt";

    if (value->key)
        put("%s:", value->key);
    put("%c", letters[value->type]);
    if (value->text)
        put("%s", value->text);
    for (const struct toml *child = value->first; child; child = child->next) {
        put("%s", child == value->first ? "" : " ");
        put_value(child);
    }
    if (value->type <= TOML_ARRAY)
        put("%c", value->type == TOML_TABLE ? '}' : ']');
}

static const char *parse(const char *text)
{
    char reason[TOML_REASON_MAX] = "";
    struct toml *root;

    dump[0] = '\0';
    if (toml_parse(text, strlen(text), &root, reason)) {
        if (!text_starts_with(reason, "line "))
            fail_msg("no line in \"%s\" for %s", reason, text);
        return NULL;
    }
    put_value(root);
    toml_free(root);
    return dump;
}

static void test_valid(void **state)
{
    static const char *const cases[][2] = {
        {"", "{}"},
        {"\xef\xbb\xbf# only a comment", "{}"},
        {"a=1# x\r\n[t.'u v']\nb = \"x\\\"y#\" # c\n", "{a:i1 t:{u v:{b:sx\"y#}}}"},
        {"\"\" = 1\n'a.b' = 2\n1.2 = 3", "{:i1 a.b:i2 1:{2:i3}}"},
        {"a . b = 1\na.c = 2", "{a:{b:i1 c:i2}}"},
        {"n = [0, +1, -17, 1_000, 0xdead_BEEF, 0o17, 0b101]",
         "{n:[i0 i1 i-17 i1000 i3735928559 i15 i5]}"},
        {"n = [9223372036854775807, -9223372036854775808, -0]",
         "{n:[i9223372036854775807 i-9223372036854775808 i0]}"},
        {"f = [1.5, -0.0, 1e3, 6.6_2E-3_4, +inf, -nan, nan]",
         "{f:[f1.5 f-0.0 f1e3 f6.62E-34 f+inf f-nan fnan]}"},
        {"b = [true,false,]", "{b:[btrue bfalse]}"},
        {"d = [1979-05-27T07:32:00Z, 1979-05-27 07:32:00.5-07:00]",
         "{d:[D1979-05-27T07:32:00Z D1979-05-27 07:32:00.5-07:00]}"},
        {"d = [2000-02-29t00:00:60, 2000-02-29 , 23:59:59.999]",
         "{d:[d2000-02-29t00:00:60 y2000-02-29 t23:59:59.999]}"},
        {"s = [\"\\u00e9\\U0001F600\\t\\\\\", 'C:\\x']", "{s:[s\u00e9\U0001F600\t\\ sC:\\x]}"},
        {"s = \"\"\"\nRoses\\\n   \n  are \\\"red\\\"\"\"\"\"\"", "{s:sRosesare \"red\"\"\"}"},
        {"s = '''\n\\n''two\nlines'''", "{s:s\\n''two\nlines}"},
        {"l=[\n1, # one\n'two',[3,],\n]\nm=[]", "{l:[i1 stwo [i3]] m:[]}"},
        {"t = { a = 1, b.c = 'x', d = {} }", "{t:{a:i1 b:{c:sx} d:{}}}"},
        {"[[t]]\na=true\n[[t]]\n[t.u]\n[[t]]", "{t:[{a:btrue} {u:{}} {}]}"},
        {"[a.b]\nx=1\n[a]\ny=2", "{a:{b:{x:i1} y:i2}}"},
        {"[f]\napple.color=1\n[f.apple.taste]\nsweet=true",
         "{f:{apple:{color:i1 taste:{sweet:btrue}}}}"},
        {"[servers]\n[servers.a]", "{servers:{a:{}}}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *parsed = parse(cases[i][0]);

        if (!parsed)
            fail_msg("refused: %s", cases[i][0]);
        assert_string_equal(parsed, cases[i][1]);
    }
}

static void test_refused(void **state)
{
    static const char *const wrong[] = {
        "a",
        "a=",
        "a=b",
        "a=1 2",
        "a=\"x",
        "a=[1",
        "a=[1 2]",
        "a=[,]",
        "[t",
        "[[t]",
        "[]",
        "=1",
        "[t] x",
        "a b=1",
        "a..b=1",
        ".a=1",
        "a.=1",
        "a=1 b=2",
        "[ [t]]",
        "[[t] ]",
        "\"\"\"a\"\"\"=1",
        /* characters */
        "a='\x01'",
        "# \x7f",
        "a=1\rb=2",
        "a='\xff'",
        "a='\xc0\x80'",
        "a='\xed\xa0\x80'",
        "a=\"\\x\"",
        "a=\"\\u12\"",
        "a=\"\\ud800\"",
        "a=\"\\U00110000\"",
        "a='x\n'",
        "a='''x",
        "a=\"\"\"x\\ y\"\"\"",
        "a='''''''''",
        /* numbers */
        "a=01",
        "a=-01",
        "a=1_",
        "a=_1",
        "a=1__0",
        "a=0x",
        "a=+0x1",
        "a=0X1",
        "a=0o8",
        "a=0b2",
        "a=9223372036854775808",
        "a=0x8000000000000000",
        "a=1.",
        "a=.5",
        "a=1.e3",
        "a=01.5",
        "a=1e",
        "a=1_.5",
        "a=1._5",
        "a=Inf",
        "a=True",
        "a=--1",
        "a=1e_2",
        "a=1_e2",
        "a=0b_1",
        "a=0x_1",
        /* dates and times */
        "a=2023-02-29",
        "a=2023-13-01",
        "a=2023-00-01",
        "a=2023-1-1",
        "a=24:00:00",
        "a=12:60:00",
        "a=12:00:61",
        "a=12:00",
        "a=12:00:00.",
        "a=2023-01-01T",
        "a=2023-01-01T12:00",
        "a=2023-01-01T12:00:00+24:00",
        "a=12:00:00Z",
        /* what may come twice */
        "[t]\n[t]",
        "a=1\na=2",
        "a=1\n[a]",
        "a=1\n[a.b]",
        "a.b=1\n[a]",
        "[a.b]\n[a]\nb.c=1",
        "[a.b.c]\n[a]\nb.d=1",
        "[[a]]\n[a]",
        "[a]\n[[a]]",
        "a=[]\n[[a]]",
        "a={}\n[a.b]",
        "a={}\na.b=1",
        "a={b={}, b.c=1}",
        "a={b.c=1, b={}}",
        "a={b=1, b=2}",
        "[a.b]\n[[a]]",
        "a=[{b=1}]\n[a.c]",
        "\"a\"=1\na=2",
        /* tables in a line */
        "a={b=1",
        "a={b=1,}",
        "a={,}",
        "a={b=1 c=2}",
        "a={\nb=1}",
        "a={b=1\n}",
        "a={b}",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (parse(wrong[i]))
            fail_msg("accepted: %s as %s", wrong[i], dump);
}

static void test_depth(void **state)
{
    char text[600] = "a=";

    memset(text + 2, '[', TOML_DEPTH_MAX);
    memset(text + 2 + TOML_DEPTH_MAX, ']', TOML_DEPTH_MAX);
    assert_non_null(parse(text));
    memset(text + 2, '[', sizeof(text) - 3);
    assert_null(parse(text));
}

static void test_nul(void **state)
{
    static const char text[] = "a='\0'";
    char reason[TOML_REASON_MAX];
    struct toml *root;

    assert_true(toml_parse(text, sizeof(text) - 1, &root, reason) < 0);
    assert_int_equal(toml_parse("a=\"\\u0000\"", 10, &root, reason), 0);
    assert_int_equal(root->first->length, 1);
    toml_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_nul),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
