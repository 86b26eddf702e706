/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver has answered to questions about a kernel's occupancy. Libraries ask the same
 * before each launch, and a program would wait for its server each time. Any thread may use a
 * cache; each entry is one atomic word, so no thread waits.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCCUPANCY_ENTRIES 4u

/* Zeros are an empty cache. */
struct occupancy_cache {
    _Atomic uint32_t version; /* of the kernel's attributes */
    _Atomic uint64_t entries[OCCUPANCY_ENTRIES];
};

struct occupancy_question {
    int block_size;
    size_t shared; /* dynamic, in bytes */
    unsigned flags;
};

/* A question is put to the driver between the two: an answer of an older version is not kept. */
uint32_t occupancy_cache_version(const struct occupancy_cache *cache);
void occupancy_cache_keep(struct occupancy_cache *cache, uint32_t version,
                          const struct occupancy_question *question, int blocks);

/* The blocks of a multiprocessor: false when the answer is not known. */
bool occupancy_cache_find(const struct occupancy_cache *cache,
                          const struct occupancy_question *question, int *ret_blocks);

/* An attribute of the kernel has changed. */
void occupancy_cache_clear(struct occupancy_cache *cache);
