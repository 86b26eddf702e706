/* SPDX-License-Identifier: Apache-2.0 */
/* A word at a time: each is mixed in by a multiplication with an odd constant and a shift. Four
 * words side by side, because each step waits for the one before it. */
#include "hash.h"

#include <string.h>

#define LANES 4

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t word_at(const unsigned char *bytes, size_t size)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size);
    return word;
}

uint64_t hash_bytes(const void *bytes, size_t size)
{
    const size_t step = sizeof(uint64_t);
    const unsigned char *next = bytes;
    uint64_t lanes[LANES] = {size, 1, 2, 3};

    for (; size >= LANES * step; size -= LANES * step)
        for (int i = 0; i < LANES; i++, next += step)
            lanes[i] = mix(lanes[i], word_at(next, step));
    uint64_t hash = lanes[0];
    for (int i = 1; i < LANES; i++)
        hash = mix(hash, lanes[i]);
    for (; size >= step; size -= step, next += step)
        hash = mix(hash, word_at(next, step));
    if (size)
        hash = mix(hash, word_at(next, size));
    return hash ^ hash >> 32;
}
