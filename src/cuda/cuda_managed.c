/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about managed memory. */
#include "cuda_managed.h"

#define HOST_BIT 63

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

static uint64_t bit_of(CUmemLocation location)
{
    return 1ull << (location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : HOST_BIT);
}

CUresult cuda_advise(struct cuda_advice *advice, CUmem_advise what, CUmemLocation location,
                     int device_count)
{
    CUresult result = cuda_location_check(location, device_count);

    if (what == CU_MEM_ADVISE_SET_READ_MOSTLY || what == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
        what == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        result = CUDA_SUCCESS; /* they have no location */
    if (result != CUDA_SUCCESS)
        return result;
    switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        advice->read_mostly = what == CU_MEM_ADVISE_SET_READ_MOSTLY;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        advice->preferred = location;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        advice->preferred = (CUmemLocation){0};
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        advice->accessed_by |= bit_of(location);
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        advice->accessed_by &= ~bit_of(location);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static int ordinal_of(CUmemLocation location)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location.id;
    case CU_MEM_LOCATION_TYPE_HOST:
        return CU_DEVICE_CPU;
    default:
        return CU_DEVICE_INVALID;
    }
}

/* As many as there is room for, and CU_DEVICE_INVALID behind them. */
static void list_accessors(uint64_t accessed_by, int *ret_list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int bit = accessed_by ? __builtin_ctzll(accessed_by) : -1;

        ret_list[i] = bit < 0 ? CU_DEVICE_INVALID : bit == HOST_BIT ? CU_DEVICE_CPU : bit;
        accessed_by &= accessed_by - 1;
    }
}

static CUresult get_word(const struct cuda_advice *advice, CUmem_range_attribute attribute,
                         int *ret_word)
{
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *ret_word = advice->read_mostly;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *ret_word = ordinal_of(advice->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *ret_word = ordinal_of(advice->last_prefetch);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *ret_word = (int)advice->preferred.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *ret_word = advice->preferred.id;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *ret_word = (int)advice->last_prefetch.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *ret_word = advice->last_prefetch.id;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuda_advice_get(const struct cuda_advice *advice, CUmem_range_attribute attribute,
                         void *ret_data, size_t size)
{
    if (!ret_data || size == 0 || size % sizeof(int))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        list_accessors(advice->accessed_by, ret_data, size / sizeof(int));
        return CUDA_SUCCESS;
    }
    return size == sizeof(int) ? get_word(advice, attribute, ret_data) : CUDA_ERROR_INVALID_VALUE;
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
