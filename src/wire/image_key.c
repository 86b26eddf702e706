/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a word of every eighth cache line, and the first and last page as a whole: there stands
 * what compilers write about the rest.
 */
#include "image_key.h"

#include <string.h>

#define STEP 512u
#define EDGE 4096u

static uint64_t add_word(uint64_t hash, const unsigned char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t add_range(uint64_t hash, const unsigned char *bytes, size_t size, size_t step)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= size; at += step)
        hash = add_word(hash, bytes + at);
    return hash;
}

uint64_t image_key(const void *bytes, size_t size)
{
    const unsigned char *start = bytes;
    size_t edge = size < EDGE ? size : EDGE;
    uint64_t hash = add_range(size, start, edge, sizeof(uint64_t));

    hash = add_range(hash, start + size - edge, edge, sizeof(uint64_t));
    return add_range(hash, start, size, STEP);
}
