/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation. Memory is taken at once; a free only notes the fence behind which the
 * block may be used again. The same stream may have it earlier: its work is in order anyway.
 */
#include <stdlib.h>

#include "cleanup.h"
#include "client_memory.h"
#include "client_pool.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_vmm.h"

/* A block that was freed on a stream and is still somebody's until the fence has passed. */
struct pending {
    struct device *device;
    uint64_t address, size;
    uint64_t stream;
    struct fence fence;
    struct list link;
};

static struct pools {
    pthread_mutex_t lock;
    struct list pending; /* of all devices, oldest first */
    uint64_t handles[ATTACH_DEVICES_MAX];
    cuuint64_t threshold[ATTACH_DEVICES_MAX];
} pools;

int pool_init(void)
{
    pthread_mutex_init(&pools.lock, NULL);
    list_init(&pools.pending);
    for (int i = 0; i < client->device_count; i++) {
        pools.threshold[i] = 0;
        pools.handles[i] = handles_add(&client->handles, CLIENT_POOL, &client->devices[i]);
        if (!pools.handles[i])
            return -1;
    }
    return 0;
}

/* ---- blocks that wait for their fence ---- */

static struct pending *pop_ready(struct device *device)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pools.lock);

    list_for_each(struct pending, pending, &pools.pending, link)
    {
        if (pending->device == device && fence_passed(pending->fence)) {
            list_remove(&pending->link);
            return pending;
        }
    }
    return NULL;
}

static bool oldest_fence(struct device *device, struct fence *ret_fence, uint64_t *ret_stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pools.lock);

    list_for_each(struct pending, pending, &pools.pending, link)
    {
        if (pending->device == device) {
            *ret_fence = pending->fence;
            *ret_stream = pending->stream;
            return true;
        }
    }
    return false;
}

void memory_reclaim(struct device *device, bool wait)
{
    struct pending *pending;
    struct fence fence;
    uint64_t stream;

    do {
        while ((pending = pop_ready(device)) != NULL) {
            free(heap_give(&device->heap, pending->address));
            free(pending);
        }
    } while (wait && oldest_fence(device, &fence, &stream) &&
             fence_wait(fence, 0, FENCE_SPIN) == CUDA_SUCCESS);
}

/* A block of the same stream and size: ready without any fence. */
static bool take_from_stream(uint64_t stream, uint64_t size, uint64_t *ret_address)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pools.lock);

    list_for_each(struct pending, pending, &pools.pending, link)
    {
        if (pending->stream == stream && pending->size == size) {
            *ret_address = pending->address;
            list_remove(&pending->link);
            free(pending);
            return true;
        }
    }
    return false;
}

CUresult client_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct context *context;
    struct stream *stream;
    uint64_t address;
    CUresult result = context_enter(&context);

    if (!dptr || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (take_from_stream(stream->handle, bytesize, &address)) {
        *dptr = address;
        return CUDA_SUCCESS;
    }
    if (bytesize > context->device->record->total_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_reclaim(stream->device, false);
    result = memory_take(&stream->device->heap, context, bytesize, 0, false, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        memory_reclaim(stream->device, true);
        result = memory_take(&stream->device->heap, context, bytesize, 0, false, &address);
    }
    if (result == CUDA_SUCCESS)
        *dptr = address;
    return result;
}

static bool already_pending_locked(uint64_t address)
{
    list_for_each(struct pending, pending, &pools.pending, link)
    {
        if (pending->address == address)
            return true;
    }
    return false;
}

static CUresult put_off(struct pending what)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&pools.lock);
    struct pending *pending;

    if (already_pending_locked(what.address))
        return CUDA_ERROR_INVALID_VALUE;
    pending = malloc(sizeof(*pending));
    if (!pending)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pending = what;
    list_append(&pools.pending, &pending->link);
    return CUDA_SUCCESS;
}

CUresult client_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct allocation allocation;
    struct stream *stream;
    struct fence fence;
    enum place place;
    CUresult result = stream_enter(hStream, &stream);

    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    if (!memory_find(dptr, &allocation, &place) || place != PLACE_DEVICE ||
        allocation.address != dptr || vmm_is_reserved(dptr))
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_fence(stream, &fence);
    if (result != CUDA_SUCCESS)
        return result;
    return put_off((struct pending){
        .device = memory_device_of(dptr),
        .address = dptr,
        .size = allocation.size,
        .stream = stream->handle,
        .fence = fence,
    });
}

/* ---- each device's one pool ---- */

static struct device *pool_device(CUmemoryPool pool)
{
    return handles_get(&client->handles, CLIENT_POOL, (uint64_t)pool);
}

CUresult client_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_lookup(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool_out = (CUmemoryPool)pools.handles[dev];
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return client_cuDeviceGetDefaultMemPool(pool, dev);
}

CUresult client_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    return pool_device(pool) == device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static cuuint64_t used_bytes(struct device *device)
{
    struct allocation allocation = {0};
    cuuint64_t sum = 0;

    for (uint64_t at = 0; heap_next(&device->heap, device->primary, at, &allocation);
         at = allocation.address + 1)
        sum += allocation.size;
    return sum;
}

CUresult client_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct device *device = pool_device(pool);

    if (!device || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = 1;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pools.threshold[device->ordinal];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = used_bytes(device) + heap_unused(&device->heap);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = used_bytes(device);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* How blocks are reused is ours to decide; the threshold is remembered, since it is read back. */
CUresult client_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct device *device = pool_device(pool);

    if (!device || !value || attr < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
        attr > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pools.threshold[device->ordinal] = *(cuuint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult client_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct device *device = pool_device(pool);

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    memory_reclaim(device, false);
    heap_trim(&device->heap, minBytesToKeep);
    return CUDA_SUCCESS;
}
