/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy: how many blocks of a kernel one SM holds, after the engine's own residency model.
 */
#include "soft_context.h"
#include "soft_module.h"

static CUresult find(const void *handle, struct context **ret_context, struct kernel **ret_kernel)
{
    CUresult result = context_use_locked(ret_context);

    return result ? result : kernel_find_locked(handle, ret_kernel);
}

/* None with more shared memory than a kernel may have, or has asked for. As NVIDIA's driver, this
 * takes no account of launch bounds. */
static unsigned blocks_that_fit(const struct context *context, const struct kernel *kernel,
                                unsigned threads, size_t shared)
{
    const size_t usual = SOFT_SHARED_PER_BLOCK;

    if (threads > SOFT_THREADS_PER_BLOCK)
        return 0;
    if (shared > (size_t)kernel->max_dynamic_shared &&
        (shared > usual || shared + kernel->info->static_shared > usual))
        return 0;
    return sg_occupancy(context->device->engine, kernel->info, threads, shared);
}

CUresult soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                                   int blockSize,
                                                                   size_t dynamicSMemSize,
                                                                   unsigned int flags)
{
    struct context *context;
    struct kernel *kernel;

    if (!numBlocks || blockSize <= 0 || (flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find(func, &context, &kernel);

    if (result)
        return result;
    *numBlocks = (int)blocks_that_fit(context, kernel, blockSize, dynamicSMemSize);
    return CUDA_SUCCESS;
}

CUresult soft_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                          int blockSize, size_t dynamicSMemSize)
{
    return soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                     dynamicSMemSize, 0);
}

/* The block size with most threads resident; among equals the largest. */
CUresult
soft_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                               CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                               size_t dynamicSMemSize, int blockSizeLimit,
                                               unsigned int flags)
{
    struct context *context;
    struct kernel *kernel;
    unsigned best = 0, best_block = 0, limit;

    if (!minGridSize || !blockSize || (flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find(func, &context, &kernel);

    if (result)
        return result;
    limit = kernel->info->max_threads_per_block;
    if (blockSizeLimit > 0 && (unsigned)blockSizeLimit < limit)
        limit = blockSizeLimit;
    for (unsigned block = limit; block > 0; block = block % 32 ? block & ~31u : block - 32) {
        size_t shared =
            blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(block) : dynamicSMemSize;
        unsigned blocks = blocks_that_fit(context, kernel, block, shared);

        if (blocks * block > best) {
            best = blocks * block;
            best_block = block;
        }
    }
    *blockSize = best_block;
    *minGridSize = best ? best / best_block * context->device->sm_count : 0;
    return CUDA_SUCCESS;
}

CUresult soft_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                               CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                               size_t dynamicSMemSize, int blockSizeLimit)
{
    return soft_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
                                                          blockSizeToDynamicSMemSize,
                                                          dynamicSMemSize, blockSizeLimit, 0);
}

CUresult soft_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                      int numBlocks, int blockSize)
{
    struct context *context;
    struct kernel *kernel;
    size_t share, fixed, most;

    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find(func, &context, &kernel);

    if (result)
        return result;
    share = SOFT_SHARED_PER_SM / numBlocks;
    fixed = SOFT_SHARED_RESERVED + kernel->info->static_shared;
    most = (size_t)kernel->max_dynamic_shared;
    *dynamicSmemSize = share <= fixed ? 0 : share - fixed < most ? share - fixed : most;
    return CUDA_SUCCESS;
}

static unsigned cluster_size(const CUlaunchConfig *config, unsigned otherwise)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];

        if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return attribute->value.clusterDim.x * attribute->value.clusterDim.y *
                   attribute->value.clusterDim.z;
    }
    return otherwise;
}

CUresult soft_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                 const CUlaunchConfig *config)
{
    struct context *context;
    struct kernel *kernel;

    if (!clusterSize || !config)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find(func, &context, &kernel);

    if (!result)
        *clusterSize = kernel->non_portable_cluster ? SG_MAX_CLUSTER : SOFT_CLUSTER_PORTABLE;
    return result;
}

CUresult soft_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                           const CUlaunchConfig *config)
{
    struct context *context;
    struct kernel *kernel;

    if (!numClusters || !config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find(func, &context, &kernel);

    if (result)
        return result;
    const unsigned *fixed = kernel->info->cluster;
    unsigned size = cluster_size(config, fixed[0] ? fixed[0] * fixed[1] * fixed[2] : 1);
    unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (size == 0 || size > SG_MAX_CLUSTER)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *numClusters = (int)(context->device->sm_count *
                         sg_cluster_occupancy(context->device->engine, kernel->info, threads,
                                              config->sharedMemBytes, size));
    return CUDA_SUCCESS;
}
