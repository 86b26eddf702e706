/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the calls about managed memory. */
#include "cuda_managed.h"

CUmemLocation cuda_location_of(CUdevice device)
{
    if (device == CU_DEVICE_CPU)
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

CUresult cuda_location_check(CUmemLocation location, int device_count)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location.id >= 0 && location.id < device_count ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The first location is for the first range, and each has ranges of its own. */
static bool locations_are_valid(const struct cuda_ranges *ranges)
{
    if (!ranges->locations)
        return true;
    if (!ranges->first_ranges || ranges->location_count == 0 ||
        ranges->location_count > ranges->count || ranges->first_ranges[0] != 0)
        return false;
    for (size_t i = 1; i < ranges->location_count; i++)
        if (ranges->first_ranges[i] <= ranges->first_ranges[i - 1] ||
            ranges->first_ranges[i] >= ranges->count)
            return false;
    return true;
}

CUresult cuda_ranges_visit(const struct cuda_ranges *ranges, cuda_range_function *function,
                           void *user)
{
    CUmemLocation location = {0};
    CUresult result = CUDA_SUCCESS;
    size_t next = 0;

    if (!ranges->addresses || !ranges->sizes || ranges->count == 0 || ranges->flags ||
        !locations_are_valid(ranges))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < ranges->count && result == CUDA_SUCCESS; i++) {
        if (ranges->locations && next < ranges->location_count && ranges->first_ranges[next] == i)
            location = ranges->locations[next++];
        result = function(user, ranges->addresses[i], ranges->sizes[i], location);
    }
    return result;
}

bool cuda_attach_is_valid(CUstream stream, uint64_t size, uint64_t length, unsigned flags)
{
    if (length && length != size)
        return false;
    if (flags == CU_MEM_ATTACH_SINGLE)
        return stream && stream != CU_STREAM_LEGACY;
    return flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
}
