/* SPDX-License-Identifier: Apache-2.0 */
/* See occupancy_cache.h. The words order nothing else, so all accesses are relaxed. */
#include "occupancy_cache.h"

#define BLOCK_SIZE_BITS 14
#define BLOCKS_BITS 8
#define VERSION_BITS 8

/* An entry, from its lowest bit: 32 bits of shared memory, the block's size, the flag, "valid", the
 * version, the answer. The question and the version are the key. */
#define SIZE_SHIFT 32
#define FLAG_SHIFT (SIZE_SHIFT + BLOCK_SIZE_BITS)
#define VALID_SHIFT (FLAG_SHIFT + 1)
#define VERSION_SHIFT (VALID_SHIFT + 1)
#define BLOCKS_SHIFT (VERSION_SHIFT + VERSION_BITS)

_Static_assert(BLOCKS_SHIFT + BLOCKS_BITS == 64, "an entry is one word");

static bool is_keepable(const struct occupancy_question *question)
{
    return question->block_size > 0 && question->block_size >> BLOCK_SIZE_BITS == 0 &&
           question->shared <= UINT32_MAX && question->flags <= 1;
}

static uint64_t key_of(const struct occupancy_question *question, uint32_t version)
{
    return (uint64_t)question->shared | (uint64_t)question->block_size << SIZE_SHIFT |
           (uint64_t)question->flags << FLAG_SHIFT | UINT64_C(1) << VALID_SHIFT |
           (uint64_t)(version & ((1u << VERSION_BITS) - 1)) << VERSION_SHIFT;
}

/* Sizes of blocks are mostly multiples of 32. */
static unsigned entry_of(const struct occupancy_question *question)
{
    return ((unsigned)question->block_size / 32 + (unsigned)(question->shared >> 10)) %
           OCCUPANCY_ENTRIES;
}

uint32_t occupancy_cache_version(const struct occupancy_cache *cache)
{
    return atomic_load_explicit(&cache->version, memory_order_relaxed);
}

void occupancy_cache_keep(struct occupancy_cache *cache, uint32_t version,
                          const struct occupancy_question *question, int blocks)
{
    if (!is_keepable(question) || blocks < 0 || blocks >> BLOCKS_BITS)
        return;
    uint64_t entry = key_of(question, version) | (uint64_t)blocks << BLOCKS_SHIFT;
    atomic_store_explicit(&cache->entries[entry_of(question)], entry, memory_order_relaxed);
}

bool occupancy_cache_find(const struct occupancy_cache *cache,
                          const struct occupancy_question *question, int *ret_blocks)
{
    if (!is_keepable(question))
        return false;
    uint64_t entry =
        atomic_load_explicit(&cache->entries[entry_of(question)], memory_order_relaxed);
    uint64_t key = entry & ((UINT64_C(1) << BLOCKS_SHIFT) - 1);

    if (key != key_of(question, occupancy_cache_version(cache)))
        return false;
    *ret_blocks = (int)(entry >> BLOCKS_SHIFT);
    return true;
}

/* The version keeps an answer out that a thread still waits for. */
void occupancy_cache_clear(struct occupancy_cache *cache)
{
    atomic_fetch_add_explicit(&cache->version, 1, memory_order_relaxed);
    for (unsigned i = 0; i < OCCUPANCY_ENTRIES; i++)
        atomic_store_explicit(&cache->entries[i], 0, memory_order_relaxed);
}
