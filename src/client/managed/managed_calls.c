/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: pinned pages. Both sides reach it at any time and at one address, and it never
 * moves, so advice and prefetches are only remembered.
 */
#include <stdlib.h>

#include "client_capture.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_managed.h"

CUresult client_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned flags)
{
    struct allocation like = {.size = bytesize, .managed = true};
    uint64_t address;
    CUresult result = context_enter_unsafe(&like.context);

    if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    like.advice = calloc(1, sizeof(*like.advice));
    if (!like.advice)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = memory_take_like(memory_host_heap(), &like, &address);
    if (result != CUDA_SUCCESS)
        free(like.advice);
    else
        *dptr = address;
    return result;
}

/* Managed memory that holds all of a range. */
static CUresult find_managed(uint64_t address, uint64_t count, struct allocation *ret_allocation)
{
    enum place place;

    if (count == 0 || !memory_find(address, ret_allocation, &place) || !ret_allocation->managed ||
        count > ret_allocation->size - (address - ret_allocation->address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult client_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                               CUmemLocation location)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter(&context);

    if (result == CUDA_SUCCESS)
        result = find_managed(devPtr, count, &allocation);
    return result != CUDA_SUCCESS
               ? result
               : cuda_advise(allocation.advice, advice, location, client->device_count);
}

CUresult client_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return client_cuMemAdvise_v2(devPtr, count, advice, cuda_location_of(device));
}

CUresult client_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                      unsigned flags, CUstream hStream)
{
    struct allocation allocation;
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    result = cuda_location_check(location, client->device_count);
    if (result == CUDA_SUCCESS)
        result = find_managed(devPtr, count, &allocation);
    if (result == CUDA_SUCCESS)
        allocation.advice->last_prefetch = location;
    return result;
}

CUresult client_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                                   CUstream hStream)
{
    return client_cuMemPrefetchAsync_v2(devPtr, count, cuda_location_of(dstDevice), 0, hStream);
}

CUresult client_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                        CUmem_range_attribute *attributes, size_t numAttributes,
                                        CUdeviceptr devPtr, size_t count)
{
    struct allocation allocation;
    CUresult result = client_error();

    if (!data || !dataSizes || !attributes || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = find_managed(devPtr, count, &allocation);
    for (size_t i = 0; i < numAttributes && result == CUDA_SUCCESS; i++)
        result = cuda_advice_get(allocation.advice, attributes[i], data[i], dataSizes[i]);
    return result;
}

CUresult client_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                       CUdeviceptr devPtr, size_t count)
{
    return client_cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

CUresult client_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                       unsigned flags)
{
    struct allocation allocation;
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    if (result == CUDA_SUCCESS)
        result = find_managed(dptr, 1, &allocation);
    if (result != CUDA_SUCCESS)
        return result;
    return allocation.address == dptr &&
                   cuda_attach_is_valid(hStream, allocation.size, length, flags)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}
