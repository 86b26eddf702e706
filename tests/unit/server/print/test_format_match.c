/* SPDX-License-Identifier: Apache-2.0 */
/* Which writes of a driver a format explains. The parts are as an H100's driver (580) writes them.
 */
#include "format_match.h"

#include <stdarg.h>
#include <string.h>

#include "unit.h"

/* The writes end with NULL. */
static struct driver_writes writes_of(const char *text, ...)
{
    struct driver_writes writes = {0};
    va_list texts;

    va_start(texts, text);
    for (; text; text = va_arg(texts, const char *))
        assert_true(driver_writes_add(&writes, text, strlen(text)));
    va_end(texts);
    return writes;
}

/* How many writes the format explains. */
static unsigned explained(const char *format, const struct driver_writes *writes)
{
    size_t end = format_match(format, writes, 0), at = 0, size;
    const char *text;
    unsigned count = 0;

    while (at < end) {
        at = driver_writes_next(writes, at, &text, &size);
        count++;
    }
    assert_int_equal(at, end);
    return count;
}

#define EXPECT(count, format, ...)                                   \
    do {                                                             \
        struct driver_writes writes_ = writes_of(__VA_ARGS__, NULL); \
        assert_int_equal(explained(format, &writes_), count);        \
        driver_writes_fini(&writes_);                                \
    } while (0)

static void test_each_conversion_is_a_write(void **state)
{
    EXPECT(1, "plain\n", "plain\n");
    EXPECT(1, "plain\n", "plain\n", "plain\n");
    EXPECT(2, "two\nlines %d\n", "two\nlines 1", "\n");
    EXPECT(2, "part %d ", "part 2", " ");
    EXPECT(8, "%s|%5.2f|%c|%lld|%p|%%|%x\n", "a string", "| 3.25", "|c", "|7", "|(nil)", "|%",
           "|ff", "\n");
    EXPECT(5, "tag %d thread %d %s %f\n", "tag 1", " thread 0", " str", " 1.500000", "\n");
}

static void test_other_text_is_not_explained(void **state)
{
    EXPECT(0, "plain\n", "plain");
    EXPECT(0, "plain\n", "plain\nmore");
    EXPECT(0, "", "plain");
    EXPECT(0, "step %d\n", "step 1");
    EXPECT(0, "step %d\n", "step 1", " of");
    EXPECT(0, "step %d\n", "stop 1", "\n");
}

static void test_numbers_are_told_from_text(void **state)
{
    EXPECT(1, "%d", "-12");
    EXPECT(0, "%d", "1.5");
    EXPECT(0, "%d", "0x1f");
    EXPECT(1, "%u", "   7");
    EXPECT(1, "%x", "1f");
    EXPECT(1, "%e", "-1.5e+10");
    EXPECT(1, "%g", "inf");
    EXPECT(1, "%f", "-nan");
    EXPECT(0, "%f", "text");
    EXPECT(1, "%-*.*f", "1.5   ");
    EXPECT(1, "%s", "any text\n at all");
    EXPECT(1, "%c", "x");
    EXPECT(1, "%p", "0x7f0012345678");
}

/* A driver does not write an empty string that has no text before it. */
static void test_strings_may_be_empty(void **state)
{
    EXPECT(2, "%s%d\n", "5", "\n");
    EXPECT(3, "%s%d\n", "text", "5", "\n");
    EXPECT(1, "%s\n", "\n");
    EXPECT(2, "name %s\n", "name ", "\n");
    EXPECT(1, "%s%s%s", "x");
    EXPECT(0, "%s%s%d", "x");
}

/* A format that leaves everything open costs a bounded time. */
static void test_open_formats_end(void **state)
{
    struct driver_writes writes = {0};
    char format[2001];

    for (unsigned i = 0; i < 1000; i++)
        memcpy(format + 2 * i, "%s", 2);
    strcpy(format + 1996, "%d!");
    for (unsigned i = 0; i < 2000; i++)
        assert_true(driver_writes_add(&writes, "x", 1));
    assert_int_equal(explained(format, &writes), 0);
    driver_writes_fini(&writes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_conversion_is_a_write),
        cmocka_unit_test(test_other_text_is_not_explained),
        cmocka_unit_test(test_numbers_are_told_from_text),
        cmocka_unit_test(test_strings_may_be_empty),
        cmocka_unit_test(test_open_formats_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
