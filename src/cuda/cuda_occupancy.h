/* SPDX-License-Identifier: Apache-2.0 */
/* The search behind cuOccupancyMaxPotentialBlockSize. */
#pragma once

#include "cuda_abi.h"

/* The subject of the search, and the limits of kernel and device. */
struct cuda_block_search {
    /* How many blocks of so many threads, each with so many bytes of dynamic shared memory, one
     * multiprocessor holds. An error ends the search. */
    CUresult (*blocks)(const void *context, int block_size, size_t shared, int *ret_blocks);
    const void *context;
    CUoccupancyB2DSize shared_for; /* bytes of dynamic shared memory by block size, or NULL */
    size_t shared;                 /* the same for every size, where that is NULL */
    int block_max;                 /* threads of the largest block that the kernel may have */
    int warp_size;
    int threads_per_sm;
    int sm_count;
};

/* The largest of the block sizes that keep most threads of a multiprocessor busy, and the grid that
 * fills the device with it. Both are 0 when none fits. `limit` > 0 bounds the size further. Returns
 * an error of `blocks`. Pure otherwise. */
CUresult cuda_best_block(const struct cuda_block_search *search, int limit, int *ret_grid,
                         int *ret_block);
