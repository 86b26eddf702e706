/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of text: whole, in order, and with room for no more than there is. */
#include "output_area.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

struct ends {
    struct output_area *area;
    uint32_t tail, head;
};

static struct ends ends_at(uint32_t cursor)
{
    struct ends ends = {calloc(1, sizeof(*ends.area)), cursor, cursor};

    assert_non_null(ends.area);
    ends.area->tail = ends.area->head = cursor;
    return ends;
}

static size_t put(struct ends *ends, const char *text, size_t size)
{
    return output_area_put(ends->area, &ends->tail, text, size);
}

static size_t take(struct ends *ends, char *text, size_t size)
{
    return output_area_take(ends->area, &ends->head, text, size);
}

static void test_empty(void **state)
{
    struct ends ends = ends_at(0);
    char text[8];

    assert_int_equal(take(&ends, text, sizeof(text)), 0);
    free(ends.area);
}

static void test_output_comes_out_as_it_went_in(void **state)
{
    struct ends ends = ends_at(0);
    char text[8];

    assert_int_equal(put(&ends, "one two", 7), 7);
    assert_int_equal(take(&ends, text, 3), 3);
    assert_memory_equal(text, "one", 3);
    assert_int_equal(take(&ends, text, sizeof(text)), 4);
    assert_memory_equal(text, " two", 4);
    free(ends.area);
}

static void test_full(void **state)
{
    struct ends ends = ends_at(0);
    char *text = calloc(1, OUTPUT_AREA_BYTES + 1);

    assert_int_equal(put(&ends, text, OUTPUT_AREA_BYTES + 1), OUTPUT_AREA_BYTES);
    assert_int_equal(put(&ends, "x", 1), 0);
    assert_int_equal(take(&ends, text, 5), 5);
    assert_int_equal(put(&ends, "1234567", 7), 5);
    free(text);
    free(ends.area);
}

/* Over the end of the area and over the end of the cursors. */
static void test_wraps(void **state)
{
    struct ends ends = ends_at(UINT32_MAX - 2);
    char text[8];

    assert_int_equal(put(&ends, "abcdefg", 7), 7);
    assert_int_equal(ends.tail, 4);
    assert_int_equal(take(&ends, text, sizeof(text)), 7);
    assert_memory_equal(text, "abcdefg", 7);
    free(ends.area);
}

static void test_impossible_cursors(void **state)
{
    struct ends ends = ends_at(0);
    char text[8];

    ends.area->head = 1; /* has read what was never written */
    assert_int_equal(put(&ends, "x", 1), 0);
    ends.area->tail = OUTPUT_AREA_BYTES + 1;
    assert_int_equal(take(&ends, text, sizeof(text)), 0);
    free(ends.area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_output_comes_out_as_it_went_in),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_wraps),
        cmocka_unit_test(test_impossible_cursors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
