/* SPDX-License-Identifier: Apache-2.0 */
/* Columns are as wide as their widest cell; cells with commas or quotes are quoted in CSV. */
#include "table.h"

#include <string.h>

#include "unit.h"

static char output[512];

static void take_line(void *context, const char *text)
{
    strcat(output, text);
    strcat(output, "\n");
}

static const char *print(const struct table *table, unsigned shown, enum table_format format)
{
    *output = '\0';
    table_print(table, shown, format, take_line, NULL);
    return output;
}

static void test_formats(void **state)
{
    static const char *const titles[] = {"a", "name", "more", NULL};
    struct table table;

    table_init(&table, titles);
    assert_string_equal(print(&table, 3, TABLE_PLAIN), "A  NAME  MORE\n");
    assert_string_equal(print(&table, 3, TABLE_CSV_NOHEADER), "");
    table_add(&table, (const char *[]){"long", "x,y", "1"});
    table_add(&table, (const char *[]){"", "say \"no\"", "2"});
    assert_string_equal(print(&table, 2, TABLE_PLAIN), "A     NAME\nlong  x,y\n      say \"no\"\n");
    assert_string_equal(print(&table, 3, TABLE_CSV),
                        "a,name,more\nlong,\"x,y\",1\n,\"say \"\"no\"\"\",2\n");
    assert_int_equal(table_column(&table, "more"), 2);
    assert_int_equal(table_column(&table, "less"), -1);
    assert_false(table.incomplete);
    table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
