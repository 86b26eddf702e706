/* SPDX-License-Identifier: Apache-2.0 */
/* Every way of copying moves exactly the bytes it was given, at every alignment of both sides. */
#include "unit.h"

#include "streaming_copy.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 256u
#define LONGEST (STREAMING_COPY_FROM + 300u)
#define ROOM ((2 * GUARD + LONGEST + 127u) & ~63u)

static unsigned char *source, *target, *expected;

static void fill(unsigned char *bytes, uint64_t seed)
{
    for (size_t i = 0; i < ROOM; i++)
        bytes[i] = (unsigned char)unit_random(&seed);
}

/* The guards on both sides are compared as well. */
static void check(void (*copy)(void *, const void *, size_t), size_t to, size_t from, size_t size)
{
    memcpy(target, expected, ROOM);
    copy(target + GUARD + to, source + from, size);
    assert_memory_equal(target, expected, GUARD + to);
    assert_memory_equal(target + GUARD + to, source + from, size);
    assert_memory_equal(target + GUARD + to + size, expected + GUARD + to + size,
                        ROOM - GUARD - to - size);
}

static void check_sizes(void (*copy)(void *, const void *, size_t), size_t to, size_t from)
{
    static const size_t sizes[] = {0, 1, 15, 63, 64, 65, 127, 128, 200, 1023, 1025, 4096 + 33};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        check(copy, to, from, sizes[i]);
}

static void test_all_alignments_in_every_variant(void **state)
{
    const struct copy_variant *variants;
    unsigned count = copy_variants(&variants);

    assert_true(count >= 1);
    assert_string_equal(variants[0].name, "memcpy");
    for (unsigned way = 0; way < count; way++)
        for (size_t to = 0; to < 64; to++)
            for (size_t from = 0; from < 64; from += 1 + to % 3)
                check_sizes(variants[way].copy, to, from);
}

static void test_the_chosen_way_around_the_threshold(void **state)
{
    for (size_t size = STREAMING_COPY_FROM - 70; size <= STREAMING_COPY_FROM + 140; size += 7)
        for (size_t to = 0; to < 64; to += 13)
            check(streaming_copy, to, 63 - to, size);
}

static void test_the_default_streams(void **state)
{
    unsetenv("FUNNEL_OFF");
    streaming_copy_init();
    test_the_chosen_way_around_the_threshold(state);
}

static void test_switched_off(void **state)
{
    setenv("FUNNEL_OFF", "streaming-copy", 1);
    streaming_copy_init();
    test_the_chosen_way_around_the_threshold(state);
}

static int set_up(void **state)
{
    source = aligned_alloc(64, ROOM);
    target = aligned_alloc(64, ROOM);
    expected = aligned_alloc(64, ROOM);
    if (!source || !target || !expected)
        return -1;
    fill(source, 1);
    fill(expected, 2);
    return 0;
}

static int tear_down(void **state)
{
    free(source);
    free(target);
    free(expected);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_alignments_in_every_variant),
        cmocka_unit_test(test_the_default_streams),
        cmocka_unit_test(test_switched_off),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
