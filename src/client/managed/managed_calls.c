/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory. Where its pages can be watched, they move between the program and the device at
 * one address (managed_move.h). Else they are page-locked pages of the host, which both sides reach
 * at any time, and prefetches are only remembered.
 */
#include <stdlib.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_memory.h"
#include "client_peer_access.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_advice.h"
#include "cuda_managed.h"
#include "managed_allocation.h"
#include "managed_area.h"
#include "managed_exchange.h"
#include "managed_fault.h"
#include "managed_move.h"
#include "managed_variable.h"

static CUresult give_on_host(const struct allocation *allocation)
{
    memory_give(memory_host_heap(), allocation->address);
    return CUDA_SUCCESS;
}

static const struct memory_kind kind_managed_on_host = {
    .place = PLACE_PINNED,
    .managed = true,
    .movable = true,
    .free = give_on_host,
};

/* Where memory does not move, and where the device has no capacity. */
static CUresult allocate_on_host(const struct allocation *wanted, CUdeviceptr *ret_address)
{
    struct allocation like = *wanted;
    uint64_t address;
    CUresult result;

    like.advice = cuda_advice_create(like.size);
    if (!like.advice)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = memory_take_like(memory_host_heap(), &like, &address);
    if (result != CUDA_SUCCESS)
        cuda_advice_destroy(like.advice);
    else
        *ret_address = address;
    return result;
}

CUresult client_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned flags)
{
    struct allocation like = {.size = bytesize, .kind = &kind_managed_on_host};
    CUresult result = context_enter_unsafe(&like.context);

    if (bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    area_explain();
    if (area_is_possible() && fault_prepare(like.context->device) &&
        peer_let_all_reach(like.context->device)) {
        result = managed_create(like.context, bytesize, flags, dptr);
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            return result;
    }
    return allocate_on_host(&like, dptr);
}

/* Managed memory that contains all of a range. A variable has advice while its module is in use. */
static CUresult find_managed(uint64_t address, uint64_t count, struct allocation *ret_allocation)
{
    if (count == 0 || !address_map_find(address, ret_allocation) || !ret_allocation->advice ||
        count > ret_allocation->size - (address - ret_allocation->address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Guards the advice about all memory. */
static pthread_mutex_t advice_lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult take_advice(const struct allocation *allocation, uint64_t address, uint64_t size,
                            CUmem_advise advice, CUmemLocation location)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&advice_lock);

    return cuda_advice_take(allocation->advice, address - allocation->address, size, advice,
                            location, client->device_count);
}

static CUresult remember_prefetch(const struct allocation *allocation, uint64_t address,
                                  uint64_t size, CUmemLocation location)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&advice_lock);

    return cuda_advice_prefetched(allocation->advice, address - allocation->address, size,
                                  location);
}

/* Where the capacity is too small for all, a preferred location decides which memory goes first. */
static void follow_advice(uint64_t address, uint64_t size, CUmem_advise advice,
                          CUmemLocation location)
{
    bool on_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;

    if (!managed_moves(address))
        return;
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
        exchange_prefer(address, size, on_device ? WISH_DEVICE : WISH_HOST);
    if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        exchange_prefer(address, size, WISH_NONE);
}

CUresult client_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                               CUmemLocation location)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter(&context);

    if (result == CUDA_SUCCESS)
        result = find_managed(devPtr, count, &allocation);
    if (result == CUDA_SUCCESS)
        result = take_advice(&allocation, devPtr, count, advice, location);
    if (result == CUDA_SUCCESS)
        follow_advice(devPtr, count, advice, location);
    return result;
}

CUresult client_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return client_cuMemAdvise_v2(devPtr, count, advice, cuda_location_of(device));
}

/* Memory that does not move needs no copy. */
static CUresult prefetch_memory(uint64_t address, uint64_t size, CUmemLocation location,
                                struct stream *stream)
{
    if (!managed_moves(address))
        return CUDA_SUCCESS;
    exchange_prefetch(address, size, location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return move_down(address, size, stream);
    move_up(address, size);
    return CUDA_SUCCESS;
}

static CUresult prefetch_range(void *user, CUdeviceptr address, size_t size, CUmemLocation location)
{
    struct allocation allocation;
    CUresult result = cuda_location_check(location, client->device_count);

    if (result == CUDA_SUCCESS)
        result = find_managed(address, size, &allocation);
    if (result == CUDA_SUCCESS)
        result = remember_prefetch(&allocation, address, size, location);
    return result != CUDA_SUCCESS ? result : prefetch_memory(address, size, location, user);
}

static CUresult discard_range(void *user, CUdeviceptr address, size_t size, CUmemLocation location)
{
    struct allocation allocation;
    CUresult result = find_managed(address, size, &allocation);

    if (result == CUDA_SUCCESS)
        move_forget(address, size);
    return result;
}

static CUresult discard_and_prefetch(void *user, CUdeviceptr address, size_t size,
                                     CUmemLocation location)
{
    CUresult result = discard_range(user, address, size, location);

    return result != CUDA_SUCCESS ? result : prefetch_range(user, address, size, location);
}

static CUresult visit_ranges(const struct cuda_ranges *ranges, cuda_range_function *function,
                             CUstream hStream)
{
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    return result != CUDA_SUCCESS ? result : cuda_ranges_visit(ranges, function, stream);
}

CUresult client_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                      unsigned flags, CUstream hStream)
{
    const struct cuda_ranges one = {&devPtr, &count, 1, &location, &(size_t){0}, 1, flags};

    return visit_ranges(&one, prefetch_range, hStream);
}

CUresult client_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                        CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                        size_t numPrefetchLocs, unsigned long long flags,
                                        CUstream hStream)
{
    const struct cuda_ranges ranges = {dptrs,           sizes,           count, prefetchLocs,
                                       prefetchLocIdxs, numPrefetchLocs, flags};

    return prefetchLocs ? visit_ranges(&ranges, prefetch_range, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                       unsigned long long flags, CUstream hStream)
{
    const struct cuda_ranges ranges = {
        .addresses = dptrs, .sizes = sizes, .count = count, .flags = flags};

    return visit_ranges(&ranges, discard_range, hStream);
}

CUresult client_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                                  CUmemLocation *prefetchLocs,
                                                  size_t *prefetchLocIdxs, size_t numPrefetchLocs,
                                                  unsigned long long flags, CUstream hStream)
{
    const struct cuda_ranges ranges = {dptrs,           sizes,           count, prefetchLocs,
                                       prefetchLocIdxs, numPrefetchLocs, flags};

    return prefetchLocs ? visit_ranges(&ranges, discard_and_prefetch, hStream)
                        : CUDA_ERROR_INVALID_VALUE;
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
    pthread_mutex_lock(&advice_lock);
    for (size_t i = 0; i < numAttributes && result == CUDA_SUCCESS; i++)
        result = cuda_advice_get(allocation.advice, devPtr - allocation.address, count,
                                 attributes[i], data[i], dataSizes[i]);
    pthread_mutex_unlock(&advice_lock);
    return result;
}

CUresult client_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                       CUdeviceptr devPtr, size_t count)
{
    return client_cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

/* Pages that several variables share are all streams'. */
static bool can_attach_locked(const struct managed_allocation *managed)
{
    uint64_t start = managed->entry.address;

    return !managed->of_variables || managed_variable_is_alone(start, start + managed->entry.size);
}

/* The program may access the memory only after it has synchronized with the stream, so this applies
 * to work that is launched from now on. */
static void attach_allocation(const struct allocation *allocation, unsigned flags,
                              const struct stream *stream)
{
    managed_allocations_lock();
    for_each_managed_locked (managed, allocation->address, allocation->size) {
        if (!can_attach_locked(managed))
            continue;
        managed->attach = flags;
        managed->stream = stream->handle;
    }
    managed_allocations_unlock();
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
    if (allocation.address != dptr ||
        !cuda_attach_is_valid(hStream, allocation.size, length, flags))
        return CUDA_ERROR_INVALID_VALUE;
    attach_allocation(&allocation, flags, stream);
    return CUDA_SUCCESS;
}
