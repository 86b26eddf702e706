/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of both sides meet: nothing of either is lost, and no byte is touched without need. */
#include "three_way.h"

#include <string.h>

#include "unit.h"

#define SIZE 2000u

struct sides {
    unsigned char mine[SIZE], base[SIZE], theirs[SIZE];
};

static void differences_are_found_in_order(void **state)
{
    struct sides sides = {.mine = {0}};
    size_t start, end;

    (void)state;
    assert_false(three_way_next(sides.mine, sides.base, SIZE, 0, &start, &end));
    sides.mine[5] = sides.mine[6] = sides.mine[8] = sides.mine[1500] = sides.mine[SIZE - 1] = 1;
    assert_true(three_way_next(sides.mine, sides.base, SIZE, 0, &start, &end));
    assert_true(start == 5 && end == 7);
    assert_true(three_way_next(sides.mine, sides.base, SIZE, end, &start, &end));
    assert_true(start == 8 && end == 9);
    assert_true(three_way_next(sides.mine, sides.base, SIZE, end, &start, &end));
    assert_true(start == 1500 && end == 1501);
    assert_true(three_way_next(sides.mine, sides.base, SIZE, end, &start, &end));
    assert_true(start == SIZE - 1 && end == SIZE);
    assert_false(three_way_next(sides.mine, sides.base, SIZE, end, &start, &end));
    assert_false(three_way_next(sides.mine, sides.base, 5, 0, &start, &end));
}

static void a_span_holds_all_of_them(void **state)
{
    struct sides sides = {.mine = {0}};
    size_t start, end;

    (void)state;
    assert_false(three_way_span(sides.mine, sides.base, SIZE, &start, &end));
    sides.mine[700] = 1;
    assert_true(three_way_span(sides.mine, sides.base, SIZE, &start, &end));
    assert_true(start == 700 && end == 701);
    sides.mine[1100] = sides.mine[3] = 1;
    assert_true(three_way_span(sides.mine, sides.base, SIZE, &start, &end));
    assert_true(start == 3 && end == 1101);
    sides.mine[0] = sides.mine[SIZE - 1] = 1;
    assert_true(three_way_span(sides.mine, sides.base, SIZE, &start, &end));
    assert_true(start == 0 && end == SIZE);
}

static void both_sides_are_merged(void **state)
{
    struct sides sides = {.mine = {0}};
    unsigned char asked[SIZE];

    (void)state;
    sides.mine[1] = 1;                      /* only here */
    sides.theirs[2] = 2;                    /* only there */
    sides.mine[3] = 1, sides.theirs[3] = 2; /* both: ours is to be sent yet */
    sides.mine[4] = sides.theirs[4] = 7;    /* the same change */
    sides.theirs[SIZE - 1] = 9;
    memcpy(asked, sides.base, SIZE);
    three_way_merge(sides.mine, sides.base, asked, sides.theirs, SIZE);
    assert_int_equal(sides.mine[1], 1);
    assert_int_equal(sides.base[1], 0);
    assert_int_equal(sides.mine[2], 2);
    assert_int_equal(sides.base[2], 2);
    assert_int_equal(sides.mine[3], 1);
    assert_int_equal(sides.base[3], 2);
    assert_int_equal(sides.mine[4], 7);
    assert_int_equal(sides.base[4], 7);
    assert_int_equal(sides.mine[SIZE - 1], 9);
    assert_memory_equal(sides.base, sides.theirs, SIZE);
}

/* What went up after the other side was asked is newer than the answer. */
static void an_old_answer_undoes_nothing(void **state)
{
    struct sides sides = {.mine = {0}};
    unsigned char asked[SIZE] = {0};

    (void)state;
    sides.mine[10] = sides.base[10] = 5;
    sides.mine[11] = sides.base[11] = 5;
    sides.theirs[11] = sides.theirs[12] = 8;
    three_way_merge(sides.mine, sides.base, asked, sides.theirs, SIZE);
    assert_true(sides.mine[10] == 5 && sides.base[10] == 5);
    assert_true(sides.mine[11] == 5 && sides.base[11] == 5);
    assert_true(sides.mine[12] == 8 && sides.base[12] == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_found_in_order),
        cmocka_unit_test(a_span_holds_all_of_them),
        cmocka_unit_test(both_sides_are_merged),
        cmocka_unit_test(an_old_answer_undoes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
