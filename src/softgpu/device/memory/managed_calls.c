/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The advice of programs about managed memory. It is the machine's own memory and never moves, so
 * their wishes are only remembered. managed_attach.c is for what it is attached to.
 */
#include "cuda_managed.h"
#include "managed_attach.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

/* Managed memory that holds all of a range. */
static CUresult find_managed_locked(uint64_t address, uint64_t count, struct memory **ret_memory)
{
    struct memory *memory = memory_find_locked(address);

    if (count == 0 || !memory || !memory_is_managed(memory) ||
        count > memory->size - (address - memory->address))
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory->advice)
        memory->advice = cuda_advice_create(memory->size);
    if (!memory->advice)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_memory = memory;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                             CUmemLocation location)
{
    struct memory *memory;
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = find_managed_locked(devPtr, count, &memory);
    return result ? result
                  : cuda_advice_take(memory->advice, devPtr - memory->address, count, advice,
                                     location, (int)devices_count());
}

CUresult soft_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return soft_cuMemAdvise_v2(devPtr, count, advice, cuda_location_of(device));
}

static CUresult prefetch_locked(void *user, CUdeviceptr address, size_t size,
                                CUmemLocation location)
{
    struct memory *memory;
    CUresult result = cuda_location_check(location, (int)devices_count());

    (void)user;
    if (!result)
        result = find_managed_locked(address, size, &memory);
    return result
               ? result
               : cuda_advice_prefetched(memory->advice, address - memory->address, size, location);
}

/* Discarded contents may as well stay. */
static CUresult discard_locked(void *user, CUdeviceptr address, size_t size, CUmemLocation location)
{
    struct memory *memory;

    (void)user;
    (void)location;
    return find_managed_locked(address, size, &memory);
}

static CUresult visit_ranges(const struct cuda_ranges *ranges, cuda_range_function *function,
                             CUstream hStream)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    return result ? result : cuda_ranges_visit(ranges, function, stream);
}

CUresult soft_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                    unsigned int flags, CUstream hStream)
{
    const size_t first = 0;
    const struct cuda_ranges one = {&devPtr, &count, 1, &location, &first, 1, flags};

    return visit_ranges(&one, prefetch_locked, hStream);
}

CUresult soft_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                      CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                      size_t numPrefetchLocs, unsigned long long flags,
                                      CUstream hStream)
{
    const struct cuda_ranges ranges = {dptrs,           sizes,           count, prefetchLocs,
                                       prefetchLocIdxs, numPrefetchLocs, flags};

    return prefetchLocs ? visit_ranges(&ranges, prefetch_locked, hStream)
                        : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                     unsigned long long flags, CUstream hStream)
{
    const struct cuda_ranges ranges = {
        .addresses = dptrs, .sizes = sizes, .count = count, .flags = flags};

    return visit_ranges(&ranges, discard_locked, hStream);
}

CUresult soft_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                                CUmemLocation *prefetchLocs,
                                                size_t *prefetchLocIdxs, size_t numPrefetchLocs,
                                                unsigned long long flags, CUstream hStream)
{
    return soft_cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                        numPrefetchLocs, flags, hStream);
}

CUresult soft_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                                 CUstream hStream)
{
    return soft_cuMemPrefetchAsync_v2(devPtr, count, cuda_location_of(dstDevice), 0, hStream);
}

CUresult soft_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                      CUmem_range_attribute *attributes, size_t numAttributes,
                                      CUdeviceptr devPtr, size_t count)
{
    struct memory *memory;
    CUresult result;

    if (!data || !dataSizes || !attributes || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    result = find_managed_locked(devPtr, count, &memory);
    for (size_t i = 0; i < numAttributes && !result; i++)
        result = cuda_advice_get(memory->advice, devPtr - memory->address, count, attributes[i],
                                 data[i], dataSizes[i]);
    return result;
}

CUresult soft_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                     CUdeviceptr devPtr, size_t count)
{
    return soft_cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

CUresult soft_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                     unsigned int flags)
{
    struct memory *memory;
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    if (!result)
        result = find_managed_locked(dptr, 1, &memory);
    if (result)
        return result;
    if (memory->address != dptr || !cuda_attach_is_valid(hStream, memory->size, length, flags))
        return CUDA_ERROR_INVALID_VALUE;
    return managed_attach_locked(memory, flags, stream);
}
