/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk_hash.h. */
#include "chunk_hash.h"

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 33) * CHUNK_HASH_MIX_1;
    value = (value ^ value >> 33) * CHUNK_HASH_MIX_2;
    return value ^ value >> 33;
}

static void take_word(struct chunk_hash *lane, uint64_t word)
{
    uint64_t spread = rotate(word * CHUNK_HASH_WORD, 32) * CHUNK_HASH_SPREAD;

    lane->word[0] = rotate(lane->word[0] ^ spread, 27) * 5 + CHUNK_HASH_ADD;
    lane->word[1] = rotate(lane->word[1] + spread, 32) * CHUNK_HASH_STEP;
}

static void begin_lanes(struct chunk_hash *lanes, size_t count)
{
    for (uint64_t i = 0; i < CHUNK_HASH_LANES; i++)
        lanes[i] =
            (struct chunk_hash){{((i + 1) * CHUNK_HASH_WORD) ^ count, (i + 1) * CHUNK_HASH_STEP}};
}

struct chunk_hash chunk_hash_of(const void *bytes, size_t size)
{
    struct chunk_hash lanes[CHUNK_HASH_LANES], sum = {{0, 0}};
    const uint64_t *words = bytes;
    size_t count = size / sizeof(*words), row = 0;

    begin_lanes(lanes, count);
    for (; row + CHUNK_HASH_LANES <= count; row += CHUNK_HASH_LANES)
        for (size_t i = 0; i < CHUNK_HASH_LANES; i++)
            take_word(&lanes[i], words[row + i]);
    for (size_t i = 0; row + i < count; i++)
        take_word(&lanes[i], words[row + i]);
    for (size_t i = 0; i < CHUNK_HASH_LANES; i++) {
        sum.word[0] += mix(lanes[i].word[0]);
        sum.word[1] += mix(lanes[i].word[1]);
    }
    return sum;
}
