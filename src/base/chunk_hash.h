/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 128 bits of a chunk's contents, by which two versions of a chunk are told apart. A CPU and a GPU
 * (hash_kernel.h) find the same. A program can make two contents with the same hash, so the hash
 * decides about versions of that program's own memory only.
 *
 * CHUNK_HASH_LANES lanes take a word of 8 bytes each in turn. Each step of a lane is one-to-one in
 * the word, so a change of a single word always shows. The hash is the sum of the mixed lanes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_HASH_LANES 256u

/* Constants of the steps, also as text for the kernel's PTX. */
#define CHUNK_HASH_WORD 0x9e3779b97f4a7c15
#define CHUNK_HASH_SPREAD 0xc2b2ae3d27d4eb4f
#define CHUNK_HASH_STEP 0x165667b19e3779f9
#define CHUNK_HASH_ADD 0x52dce729
#define CHUNK_HASH_MIX_1 0xff51afd7ed558ccd
#define CHUNK_HASH_MIX_2 0xc4ceb9fe1a85ec53

struct chunk_hash {
    uint64_t word[2];
};

static inline bool chunk_hash_is_equal(const struct chunk_hash *a, const struct chunk_hash *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* Of `size` bytes, a multiple of 8, at an aligned address. */
struct chunk_hash chunk_hash_of(const void *bytes, size_t size);
