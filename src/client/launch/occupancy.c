/* SPDX-License-Identifier: Apache-2.0 */
/* Occupancy: the server's driver computes it, the search for the best block runs here. */
#include "occupancy.h"

#include "client_library.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_occupancy.h"
#include "wire_calls.h"

/* Whether the program may use so much shared memory. The server only knows the largest bound of all
 * clients. A bound that has been lowered does not matter here. */
static bool may_have_shared(const struct function *function, size_t dynamic)
{
    const struct device *device = function->module->context->device;
    size_t usual =
        (size_t)device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    size_t fixed = (size_t)function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];

    return dynamic <=
               (size_t)function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] ||
           (dynamic <= usual && dynamic + fixed <= usual);
}

static CUresult ask_driver(const struct function *function,
                           const struct occupancy_question *question, int *ret_blocks)
{
    struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags in = {
        .f = function->handle,
        .blockSize = question->block_size,
        .dynamicSMemSize = question->shared,
        .flags = question->flags,
    };
    struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_reply out;
    CUresult result =
        wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&client->channel, &in, &out);

    if (result == CUDA_SUCCESS)
        *ret_blocks = out.numBlocks;
    return result;
}

CUresult occupancy_blocks(struct function *function, const struct occupancy_question *question,
                          int *ret_blocks)
{
    if (occupancy_cache_find(&function->occupancy, question, ret_blocks))
        return CUDA_SUCCESS;
    uint32_t version = occupancy_cache_version(&function->occupancy);
    CUresult result = ask_driver(function, question, ret_blocks);

    if (result == CUDA_SUCCESS)
        occupancy_cache_keep(&function->occupancy, version, question, *ret_blocks);
    return result;
}

static CUresult blocks_per_sm(struct function *function, const struct occupancy_question *question,
                              int *ret_blocks)
{
    if (may_have_shared(function, question->shared))
        return occupancy_blocks(function, question, ret_blocks);
    *ret_blocks = 0;
    return CUDA_SUCCESS;
}

CUresult client_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks,
                                                                     CUfunction func, int blockSize,
                                                                     size_t dynamicSMemSize,
                                                                     unsigned flags)
{
    struct function *function;
    CUresult result;

    if (blockSize <= 0 || flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    result = function_enter(func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return blocks_per_sm(function, &(struct occupancy_question){blockSize, dynamicSMemSize, flags},
                         numBlocks);
}

CUresult client_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                            int blockSize, size_t dynamicSMemSize)
{
    return client_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT);
}

CUresult client_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                        int numBlocks, int blockSize)
{
    struct wire_cuOccupancyAvailableDynamicSMemPerBlock in = {.numBlocks = numBlocks,
                                                              .blockSize = blockSize};
    struct wire_cuOccupancyAvailableDynamicSMemPerBlock_reply out;
    struct function *function;
    CUresult result;
    size_t most;

    if (numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = function_enter(func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    in.f = function->handle;
    result = wire_cuOccupancyAvailableDynamicSMemPerBlock(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS)
        return result;
    most = (size_t)function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    *dynamicSmemSize = out.dynamicSmemSize < most ? out.dynamicSmemSize : most;
    return CUDA_SUCCESS;
}

struct block_search {
    struct function *function;
    unsigned flags;
};

static CUresult answer_question(const void *context, int block_size, size_t shared, int *ret_blocks)
{
    const struct block_search *search = context;

    return blocks_per_sm(search->function,
                         &(struct occupancy_question){block_size, shared, search->flags},
                         ret_blocks);
}

CUresult
client_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                 CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                 size_t dynamicSMemSize, int blockSizeLimit,
                                                 unsigned flags)
{
    struct function *function;
    const struct device *device;
    CUresult result;

    if (!minGridSize || !blockSize || flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    result = function_enter(func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    device = function->module->context->device;
    return cuda_best_block(
        &(struct cuda_block_search){
            .blocks = answer_question,
            .context = &(struct block_search){function, flags},
            .shared_for = blockSizeToDynamicSMemSize,
            .shared = dynamicSMemSize,
            .block_max = function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
            .warp_size = device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            .threads_per_sm =
                device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
            .sm_count = device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        },
        blockSizeLimit, minGridSize, blockSize);
}

CUresult client_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                 CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                 size_t dynamicSMemSize, int blockSizeLimit)
{
    return client_cuOccupancyMaxPotentialBlockSizeWithFlags(
        minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
        CU_OCCUPANCY_DEFAULT);
}

/* Attributes about events and graph nodes do not affect occupancy; the stream does, by its SM
 * share.
 */
static CUresult enter_config(const CUlaunchConfig *config, CUfunction func,
                             struct function **ret_function, struct stream **ret_stream)
{
    if (!config || config->numAttrs > 64 || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_enter(func, ret_function);
    return result == CUDA_SUCCESS ? stream_enter(config->hStream, ret_stream) : result;
}

/* The fields of both questions about clusters. */
#define CLUSTER_QUESTION(config, function, stream)                                        \
    .f = (function)->handle, .hStream = (stream)->handle, .gridDimX = (config)->gridDimX, \
    .gridDimY = (config)->gridDimY, .gridDimZ = (config)->gridDimZ,                       \
    .blockDimX = (config)->blockDimX, .blockDimY = (config)->blockDimY,                   \
    .blockDimZ = (config)->blockDimZ, .sharedMemBytes = (config)->sharedMemBytes,         \
    .attributes = (config)->attrs,                                                        \
    .attributes_size = (config)->numAttrs * (uint32_t)sizeof(CUlaunchAttribute)

CUresult client_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                             const CUlaunchConfig *config)
{
    struct wire_cuOccupancyMaxActiveClusters_reply out;
    struct function *function;
    struct stream *stream;
    CUresult result = enter_config(config, func, &function, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    const struct wire_cuOccupancyMaxActiveClusters in = {
        CLUSTER_QUESTION(config, function, stream)};
    result = wire_cuOccupancyMaxActiveClusters(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *numClusters = out.numClusters;
    return result;
}

CUresult client_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                   const CUlaunchConfig *config)
{
    struct wire_cuOccupancyMaxPotentialClusterSize_reply out;
    struct function *function;
    struct stream *stream;
    CUresult result = enter_config(config, func, &function, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    const struct wire_cuOccupancyMaxPotentialClusterSize in = {
        CLUSTER_QUESTION(config, function, stream)};
    result = wire_cuOccupancyMaxPotentialClusterSize(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *clusterSize = out.clusterSize;
    return result;
}
