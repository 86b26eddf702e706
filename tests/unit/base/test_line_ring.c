/* SPDX-License-Identifier: Apache-2.0 */
/* The newest lines stay, in order, and fit. */
#include "line_ring.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct line_ring ring = LINE_RING_INIT;
static char text[LINE_RING_LINES * LINE_RING_LENGTH];
static uint32_t next;

static void add(unsigned from, unsigned to)
{
    char line[16];

    for (unsigned i = from; i < to; i++) {
        snprintf(line, sizeof(line), "line %03u", i);
        line_ring_add(&ring, line);
    }
}

static void test_lines_in_order(void **state)
{
    assert_int_equal(line_ring_copy(&ring, 0, text, sizeof(text), &next), 0);
    assert_string_equal(text, "");
    add(0, 3);
    assert_int_equal(line_ring_copy(&ring, 0, text, sizeof(text), &next), 27);
    assert_string_equal(text, "line 000\nline 001\nline 002\n");
    assert_int_equal(next, 3);
    line_ring_copy(&ring, 2, text, sizeof(text), &next);
    assert_string_equal(text, "line 002\n");
    assert_int_equal(line_ring_copy(&ring, 3, text, sizeof(text), &next), 0);
    assert_int_equal(line_ring_copy(&ring, 99, text, sizeof(text), &next), 0);
}

static void test_the_newest_that_fit(void **state)
{
    line_ring_copy(&ring, 0, text, 19, &next);
    assert_string_equal(text, "line 001\nline 002\n");
    assert_int_equal(line_ring_copy(&ring, 0, text, 18, &next), 9);
    assert_int_equal(line_ring_copy(&ring, 0, text, 9, &next), 0);
    assert_int_equal(line_ring_copy(&ring, 0, text, 0, &next), 0);
}

static void test_old_lines_go(void **state)
{
    add(3, 250);
    assert_int_equal(line_ring_next(&ring), 250);
    assert_int_equal(line_ring_copy(&ring, 0, text, sizeof(text), &next), LINE_RING_LINES * 9);
    assert_memory_equal(text, "line 150\n", 9);
}

static void test_long_lines_are_cut(void **state)
{
    char line[2 * LINE_RING_LENGTH];

    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    line_ring_add(&ring, line);
    assert_int_equal(line_ring_copy(&ring, 250, text, sizeof(text), &next), LINE_RING_LENGTH - 1);
    assert_int_equal(text[LINE_RING_LENGTH - 2], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_in_order),
        cmocka_unit_test(test_the_newest_that_fit),
        cmocka_unit_test(test_old_lines_go),
        cmocka_unit_test(test_long_lines_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
