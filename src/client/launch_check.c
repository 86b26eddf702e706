/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a launch, as the driver enforces them; see launch_check.h. */
#include "launch_check.h"

#include <stdbool.h>

static bool within(unsigned value, int32_t maximum)
{
    return value >= 1 && value <= (uint32_t)maximum;
}

static bool valid_grid(const CUlaunchConfig *config, const int32_t *device)
{
    return within(config->gridDimX, device[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X]) &&
           within(config->gridDimY, device[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y]) &&
           within(config->gridDimZ, device[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z]);
}

static bool valid_block(const CUlaunchConfig *config, const int32_t *device)
{
    return within(config->blockDimX, device[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X]) &&
           within(config->blockDimY, device[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y]) &&
           within(config->blockDimZ, device[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z]);
}

/* Dynamic shared memory beyond the usual limit has to be asked for by an attribute first. */
static bool valid_shared(const CUlaunchConfig *config, const int32_t *function,
                         const int32_t *device)
{
    int64_t dynamic = config->sharedMemBytes;
    int64_t total = dynamic + function[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    int64_t usual = device[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK];
    int64_t most = device[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN];

    if (dynamic == 0)
        return true;
    if (total <= usual)
        return true;
    return dynamic <= function[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] &&
           (most == 0 || total <= most);
}

CUresult launch_check(const CUlaunchConfig *config, const int32_t *function, const int32_t *device)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;

    if (!valid_grid(config, device) || !valid_block(config, device))
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (uint32_t)device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (uint32_t)function[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (!valid_shared(config, function, device))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
