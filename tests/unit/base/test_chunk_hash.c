/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of chunks: they are always the same, and every change of a word shows. */
#include "chunk_hash.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define WORDS 4096u

static struct chunk_hash hash_of(const uint64_t *words)
{
    return chunk_hash_of(words, WORDS * sizeof(*words));
}

static bool is_same(const uint64_t *words, struct chunk_hash before)
{
    struct chunk_hash now = hash_of(words);

    return chunk_hash_is_equal(&now, &before);
}

/* The GPU makes the same. */
static void test_known_hashes(void **state)
{
    static const uint64_t words[WORDS];
    struct chunk_hash none = chunk_hash_of(words, 0), zeros = hash_of(words);
    assert_int_equal(none.word[0], 0xafe03653d9ee6b79);
    assert_int_equal(none.word[1], 0x5a24d8cee0e92f01);
    assert_int_equal(zeros.word[0], 0xfcb34fc5897428f6);
    assert_int_equal(zeros.word[1], 0xadbb517076f345e7);
}

static void test_each_bit_counts(void **state)
{
    uint64_t words[WORDS] = {0};
    struct chunk_hash zeros = hash_of(words);

    for (unsigned i = 0; i < WORDS; i += 97)
        for (unsigned bit = 0; bit < 64; bit++) {
            words[i] = 1ull << bit;
            assert_false(is_same(words, zeros));
            words[i] = 0;
        }
    assert_true(is_same(words, zeros));
}

static void test_the_place_counts(void **state)
{
    uint64_t words[WORDS] = {1, 2};
    struct chunk_hash before = hash_of(words);

    words[0] = 2;
    words[1] = 1;
    assert_false(is_same(words, before));
    words[1] = 2;
    words[CHUNK_HASH_LANES] = 1;
    words[0] = 0;
    assert_false(is_same(words, before));
}

static void test_the_size_counts(void **state)
{
    uint64_t words[WORDS] = {0};
    struct chunk_hash all = hash_of(words), less = chunk_hash_of(words, sizeof(words) - 8);

    assert_false(chunk_hash_is_equal(&all, &less));
}

/* Two changes of the highest bits, a row apart, do not undo each other. */
static void test_changes_in_one_lane(void **state)
{
    uint64_t words[WORDS] = {0};
    struct chunk_hash before = hash_of(words);

    for (unsigned first = 0; first < 64; first++)
        for (unsigned second = 0; second < 64; second++) {
            words[5] = 1ull << first;
            words[5 + CHUNK_HASH_LANES] = 1ull << second;
            assert_false(is_same(words, before));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_hashes),        cmocka_unit_test(test_each_bit_counts),
        cmocka_unit_test(test_the_place_counts),    cmocka_unit_test(test_the_size_counts),
        cmocka_unit_test(test_changes_in_one_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
