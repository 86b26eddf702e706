/* SPDX-License-Identifier: Apache-2.0 */
/* From the largest block down, in whole warps; see cuda_occupancy.h. */
#include "cuda_occupancy.h"

static size_t shared_of(const struct cuda_block_search *search, int block_size)
{
    return search->shared_for ? search->shared_for(block_size) : search->shared;
}

static int next_smaller(int block_size, int warp_size)
{
    return block_size % warp_size ? block_size - block_size % warp_size : block_size - warp_size;
}

CUresult cuda_best_block(const struct cuda_block_search *search, int limit, int *ret_grid,
                         int *ret_block)
{
    int size = limit > 0 && limit < search->block_max ? limit : search->block_max;
    int best_threads = 0, blocks;

    *ret_grid = *ret_block = 0;
    for (; size > 0 && best_threads < search->threads_per_sm;
         size = next_smaller(size, search->warp_size)) {
        CUresult result = search->blocks(search->context, size, shared_of(search, size), &blocks);

        if (result != CUDA_SUCCESS)
            return result;
        if (blocks * size <= best_threads)
            continue;
        best_threads = blocks * size;
        *ret_block = size;
        *ret_grid = blocks * search->sm_count;
    }
    return CUDA_SUCCESS;
}
