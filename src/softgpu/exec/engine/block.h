/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of blocks: one host thread runs all blocks of a cluster.
 */
#pragma once

#include "block_state.h"

/* A worker's pool of block memory. It belongs to one worker, starts as zeros, and ends with
 * block_pool_fini. */
#define POOL_BLOCKS 128
struct block_pool {
    struct block_memory kept[POOL_BLOCKS];
    unsigned count;
    struct range_cache ranges[RANGE_CACHES];
};

/*
 * The blocks of a cluster, most often of one: those of the grid from this number on, on this SM.
 * NULL when there is no memory. The grid must outlive them. Only the host thread that owns the pool
 * may run them.
 */
struct block *cluster_create(struct grid *grid, uint64_t number, uint32_t sm,
                             struct block_pool *pool);
/* Gives the memory back to the pool. */
void cluster_destroy(struct block *lead, struct block_pool *pool);
void block_pool_fini(struct block_pool *pool);
/* Runs every warp that can run until its turn ends: it waits, or has made some thousands of
 * backward jumps. False when all blocks have ended, or the grid was stopped. */
bool cluster_run(struct block *lead);
