/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a launch, as the driver enforces them; see launch_check.h. */
#include "launch_check.h"

#include <stdbool.h>

/* Whether 1 <= value <= maximum: 0 wraps to more than any maximum. */
static bool within(unsigned value, int32_t maximum)
{
    return value - 1 < (uint32_t)maximum;
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

/* The function's bound has to be raised by an attribute first, and may have been lowered. */
static bool valid_shared(uint64_t dynamic, const int32_t *function, const int32_t *device)
{
    uint64_t total = dynamic + (uint32_t)function[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    uint64_t most = (uint32_t)device[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN];

    if (dynamic == 0)
        return true;
    return dynamic <= (uint32_t)function[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] &&
           (most == 0 || total <= most);
}

/* The cluster that the launch asks for, or else the kernel's; a width of 0: neither has one. */
static void find_cluster(const CUlaunchConfig *config, const int32_t *function,
                         uint32_t ret_cluster[3])
{
    for (unsigned i = 0; i < 3; i++)
        ret_cluster[i] = (uint32_t)function[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i];
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];

        if (attribute->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
            !attribute->value.clusterDim.x)
            continue;
        ret_cluster[0] = attribute->value.clusterDim.x;
        ret_cluster[1] = attribute->value.clusterDim.y;
        ret_cluster[2] = attribute->value.clusterDim.z;
    }
}

static bool is_required_cluster(const uint32_t *cluster, const int32_t *function)
{
    const int32_t *required = &function[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];

    for (unsigned i = 0; i < 3; i++)
        if (required[0] && cluster[i] != (uint32_t)required[i])
            return false;
    return true;
}

/* Clusters of up to eight blocks can be launched anywhere; larger ones must be allowed first. */
static bool valid_cluster(const CUlaunchConfig *config, const int32_t *function)
{
    const uint32_t grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    uint64_t most = function[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] ? 16 : 8;
    uint64_t size = 1;
    uint32_t cluster[3];

    if (!config->numAttrs && !function[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH])
        return true;
    find_cluster(config, function, cluster);
    if (!cluster[0])
        return true;
    if (!is_required_cluster(cluster, function))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        size *= cluster[i];
        if (size == 0 || size > most || grid[i] % cluster[i])
            return false;
    }
    return true;
}

CUresult launch_check(const CUlaunchConfig *config, const int32_t *function, const int32_t *device)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;

    if (!valid_grid(config, device) || !valid_block(config, device))
        return CUDA_ERROR_INVALID_VALUE;
    /* The function's bound is never above the device's. */
    if (threads > (uint32_t)function[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_shared(config->sharedMemBytes, function, device))
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_cluster(config, function))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}
