/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters: the shared memory of their blocks, and their barrier.
 */
#pragma once

#include "block_state.h"

#define CLUSTER_OFFSET_BITS 24
#define CLUSTER_OFFSET_MASK ((1u << CLUSTER_OFFSET_BITS) - 1)
/* NULL when there are fewer. */
struct block *cluster_block(const struct block *block, uint32_t rank);
/* Whose shared memory this generic address is in, or NULL. */
struct block *cluster_owner(const struct block *block, uint64_t address);
/* Whether a generic address is in the shared memory of some block. */
bool cluster_holds(const struct block *block, uint64_t address, uint64_t size);
/* From the shared state space to the generic one, and back. */
uint64_t cluster_generic(const struct block *block, uint64_t address);
uint64_t cluster_shared(const struct block *block, uint64_t address);
/* The same offset in the shared memory of another block of the cluster; NULL when that has fewer
 * bytes, or there is no such block. */
unsigned char *cluster_counterpart(const struct block *block, const void *here, uint32_t rank,
                                   uint64_t size);
/* Opens the cluster's barrier if no thread is missing any more. */
void cluster_recheck(struct block *block);

void run_cluster_arrive(struct warp *warp, const struct insn *insn);
void run_cluster_wait(struct warp *warp, const struct insn *insn);
