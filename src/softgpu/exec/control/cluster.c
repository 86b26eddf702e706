/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters: blocks that start together, have a barrier, and access each other's shared memory. One
 * host thread runs all blocks of a cluster, so nothing here is atomic.
 *
 * In the shared state space, 32 bits wide, the memory of block r of the cluster begins at (r + 1)
 * << 24. What lies below is the block's own. In the generic space each has its own place.
 */
#include "cluster.h"

#include "warp.h"

struct block *cluster_block(const struct block *block, uint32_t rank)
{
    struct block *one = block->lead;
    while (one && one->rank != rank)
        one = one->next;
    return one;
}

struct block *cluster_owner(const struct block *block, uint64_t address)
{
    struct block *one = block->lead;
    while (one && address - (uintptr_t)one->shared >= one->shared_size)
        one = one->next;
    return one;
}

bool cluster_holds(const struct block *block, uint64_t address, uint64_t size)
{
    const struct block *owner = cluster_owner(block, address);
    return owner && size <= owner->shared_size - (address - (uintptr_t)owner->shared);
}

uint64_t cluster_generic(const struct block *block, uint64_t address)
{
    const struct block *owner =
        cluster_block(block, (uint32_t)(address >> CLUSTER_OFFSET_BITS) - 1);
    return owner ? (uintptr_t)owner->shared + (address & CLUSTER_OFFSET_MASK)
                 : (uintptr_t)block->shared + address;
}

uint64_t cluster_shared(const struct block *block, uint64_t address)
{
    const struct block *owner = cluster_owner(block, address);
    if (!owner || owner == block)
        return address - (uintptr_t)block->shared;
    return (address - (uintptr_t)owner->shared) | (uint64_t)(owner->rank + 1)
                                                      << CLUSTER_OFFSET_BITS;
}

unsigned char *cluster_counterpart(const struct block *block, const void *here, uint32_t rank,
                                   uint64_t size)
{
    uint64_t at = cluster_shared(block, (uintptr_t)here) & CLUSTER_OFFSET_MASK;
    uint64_t there = cluster_generic(block, at | (uint64_t)(rank + 1) << CLUSTER_OFFSET_BITS);
    return cluster_holds(block, there, size) ? (unsigned char *)(uintptr_t)there : NULL;
}

static bool everyone_has_arrived(const struct block *lead)
{
    for (const struct block *block = lead; block; block = block->next) {
        for (uint32_t i = 0; i < block->warp_count; i++) {
            if (block->warps[i].alive & ~block->warps[i].cluster_arrived)
                return false;
        }
    }
    return true;
}

static void release_warp(struct warp *warp)
{
    for (uint32_t waiting = warp->at_cluster; waiting; waiting &= waiting - 1) {
        unsigned lane = (unsigned)__builtin_ctz(waiting);
        warp_resume(warp, warp->blocked_pc[lane], 1u << lane);
    }
    warp->at_cluster = 0;
    warp->cluster_arrived = 0;
}

void cluster_recheck(struct block *any)
{
    struct block *lead = any->lead;
    if (!lead->cluster_in_use || !everyone_has_arrived(lead))
        return;
    lead->cluster_in_use = false;
    for (struct block *block = lead; block; block = block->next) {
        for (uint32_t i = 0; i < block->warp_count; i++)
            release_warp(&block->warps[i]);
    }
}

void run_cluster_arrive(struct warp *warp, const struct insn *insn)
{
    warp->cluster_arrived |= warp->active;
    warp->block->lead->cluster_in_use = true;
    cluster_recheck(warp->block);
}

/* Once the phase has ended, no waiting thread has arrived in the next one. */
void run_cluster_wait(struct warp *warp, const struct insn *insn)
{
    if (!(warp->active & warp->cluster_arrived))
        return;
    EACH_ACTIVE_LANE
    warp->blocked_pc[lane] = warp->pc;
    warp->at_cluster |= warp->active;
    warp_leave(warp, WARP_PATH_ENDED);
}
