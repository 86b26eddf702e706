/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy: how many blocks of a kernel one SM holds, after the engine's own residency model.
 */
#include "cuda_occupancy.h"
#include "soft_context.h"
#include "soft_module.h"
#include "soft_stream.h"

static CUresult find_kernel(const void *handle, struct context **ret_context,
                            struct kernel **ret_kernel)
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

    if (blockSize <= 0 || (flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find_kernel(func, &context, &kernel);

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

/* The start of the search. The lock is not held while it runs, for it calls the program. */
static CUresult start_search(CUfunction function, struct cuda_block_search *search)
{
    struct context *context;
    struct kernel *kernel;

    SOFT_LOCKED;
    CUresult result = find_kernel(function, &context, &kernel);

    if (result)
        return result;
    search->block_max = (int)kernel->info->max_threads_per_block;
    search->sm_count = (int)context->device->sm_count;
    return CUDA_SUCCESS;
}

static CUresult answer_search(const void *function, int block_size, size_t shared, int *ret_blocks)
{
    return soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        ret_blocks, (CUfunction)function, block_size, shared, CU_OCCUPANCY_DEFAULT);
}

CUresult
soft_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                               CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                               size_t dynamicSMemSize, int blockSizeLimit,
                                               unsigned int flags)
{
    struct cuda_block_search search = {
        .blocks = answer_search,
        .context = func,
        .shared_for = blockSizeToDynamicSMemSize,
        .shared = dynamicSMemSize,
        .warp_size = SOFT_WARP_SIZE,
        .threads_per_sm = SOFT_THREADS_PER_SM,
    };

    if (!minGridSize || !blockSize || (flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = start_search(func, &search);

    return result ? result : cuda_best_block(&search, blockSizeLimit, minGridSize, blockSize);
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

    if (numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find_kernel(func, &context, &kernel);

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

static CUresult find_with_stream(const void *handle, CUstream on, struct stream **ret_stream,
                                 struct kernel **ret_kernel)
{
    struct context *context;
    CUresult result = find_kernel(handle, &context, ret_kernel);

    return result ? result : stream_find_locked(on, ret_stream);
}

CUresult soft_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                 const CUlaunchConfig *config)
{
    struct stream *stream;
    struct kernel *kernel;

    SOFT_LOCKED;
    CUresult result = find_with_stream(func, config->hStream, &stream, &kernel);

    if (result)
        return result;
    int size = kernel->non_portable_cluster ? SG_MAX_CLUSTER : SOFT_CLUSTER_PORTABLE;
    while (size > 1 && !stream_sms_for_cluster(stream, (unsigned)size))
        size /= 2;
    *clusterSize = size;
    return CUDA_SUCCESS;
}

CUresult soft_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                           const CUlaunchConfig *config)
{
    struct stream *stream;
    struct kernel *kernel;

    if (config->numAttrs && !config->attrs)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = find_with_stream(func, config->hStream, &stream, &kernel);

    if (result)
        return result;
    const int *own = kernel->cluster;
    unsigned size = cluster_size(config, own[0] ? (unsigned)(own[0] * own[1] * own[2]) : 1);
    unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (size == 0 || size > SG_MAX_CLUSTER)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *numClusters = (int)(stream_sms_for_cluster(stream, size) *
                         sg_cluster_occupancy(stream->context->device->engine, kernel->info,
                                              threads, config->sharedMemBytes, size));
    return CUDA_SUCCESS;
}
