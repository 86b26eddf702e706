/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of blocks: one host thread runs all blocks of a cluster.
 */
#pragma once

#include "block_state.h"

/* What a worker has for its blocks, and keeps for the next ones. */
#define POOL_BLOCKS 128
struct block_pool {
    struct block_memory kept[POOL_BLOCKS];
    unsigned count;
    struct range_cache ranges[RANGE_CACHES];
};

/* The blocks of a cluster, most often of one, from number on; NULL when there is no memory.
 */
struct block *cluster_create(struct grid *grid, uint64_t number, uint32_t sm,
                             struct block_pool *pool);
/* Gives the memory back to the pool. */
void cluster_destroy(struct block *lead, struct block_pool *pool);
void block_pool_fini(struct block_pool *pool);
/* Runs every warp that can run for a while. False when all blocks have ended. */
bool cluster_run(struct block *lead);
