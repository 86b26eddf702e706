/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation. Memory is taken at once; a free only records the fence behind which
 * the block may be used again. The same stream may have it earlier: its work is in order anyway.
 * The pools of a device share its heap, and pools of the host that of page-locked memory. A pool is
 * a count of what was allocated from it, and settings.
 */
#include "client_pool.h"
#include "cuda_advice.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_pool.h"
#include "pool_pending.h"
#include "pool_places.h"
#include "recovery_hook.h"
#include "stream_commands.h"
#include "stream_wait.h"

struct pool {
    struct device *device; /* NULL = of the host */
    struct heap *heap;
    struct pool_sharing sharing;
    struct cuda_pool count;
    uint64_t waits; /* stream_waits() when it released last what was beyond its threshold */
};

static struct pools {
    pthread_mutex_t lock;
    uint64_t defaults[ATTACH_DEVICES_MAX];
    uint64_t current[ATTACH_DEVICES_MAX]; /* of cuMemAllocAsync */
} pools;

#define POOLS_LOCKED _cleanup_mutex_ pthread_mutex_t *pools_held = mutex_hold(&pools.lock)

uint64_t pool_create(struct device *device, uint64_t most)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    uint64_t handle;

    if (!pool)
        return 0;
    *pool = (struct pool){
        .device = device,
        .heap = device ? memory_device_heap(device) : memory_host_heap(),
        .sharing = {.device = device},
    };
    cuda_pool_init(&pool->count, most);
    handle = handles_add(&client->handles, CLIENT_POOL, pool);
    if (!handle)
        free(pool);
    return handle;
}

int pool_init(void)
{
    pthread_mutex_init(&pools.lock, NULL);
    pool_pending_init();
    pool_places_init();
    for (int i = 0; i < client->device_count; i++) {
        pools.defaults[i] = pools.current[i] = pool_create(&client->devices[i], 0);
        if (!pools.defaults[i])
            return -1;
    }
    return 0;
}

static struct pool *pool_lookup_locked(uint64_t handle)
{
    return handles_get(&client->handles, CLIENT_POOL, handle);
}

/* ---- other processes and devices ---- */

bool pool_sharing_get(CUmemoryPool handle, struct pool_sharing *ret_sharing)
{
    POOLS_LOCKED;
    const struct pool *pool = pool_lookup_locked((uint64_t)handle);

    if (pool)
        *ret_sharing = pool->sharing;
    return pool != NULL;
}

void pool_sharing_set(CUmemoryPool handle, const struct pool_sharing *sharing)
{
    POOLS_LOCKED;
    struct pool *pool = pool_lookup_locked((uint64_t)handle);

    if (!pool)
        return;
    pool->sharing.token = sharing->token;
    pool->sharing.reached_by = sharing->reached_by;
}

CUmemoryPool pool_import(struct device *device, const struct pool_token *token)
{
    uint64_t handle = pool_create(device, 0);
    POOLS_LOCKED;
    struct pool *pool = handle ? pool_lookup_locked(handle) : NULL;

    if (!pool)
        return NULL;
    pool->sharing.imported = true;
    pool->sharing.token = *token;
    return (CUmemoryPool)handle;
}

/* ---- what is a pool's own ---- */

/* Synchronizing only counts. A pool that is looked at next releases then what it should have
 * released there, if the program has waited since `waits`. */
static void settle_locked(struct pool *pool, uint64_t waits)
{
    uint64_t now = stream_waits();

    if (waits != now && pool->count.reserved > pool->count.threshold)
        cuda_pool_release(&pool->count, pool->count.threshold);
    pool->waits = now;
}

/* Counts it first, so that two threads cannot pass the bound together. */
static CUresult charge_pool(uint64_t handle, uint64_t size)
{
    POOLS_LOCKED;
    struct pool *pool = pool_lookup_locked(handle);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if ((pool->device && size > pool->device->record->total_memory) ||
        !cuda_pool_has_capacity(&pool->count, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    settle_locked(pool, pool->waits);
    cuda_pool_take(&pool->count, size);
    return CUDA_SUCCESS;
}

/* A pool may be destroyed before its allocations are freed. `waits` is stream_waits() when the
 * allocation was freed. */
static void refund_pool(uint64_t handle, uint64_t size, uint64_t waits)
{
    POOLS_LOCKED;
    struct pool *pool = pool_lookup_locked(handle);

    if (!pool)
        return;
    settle_locked(pool, pool->waits);
    cuda_pool_give(&pool->count, size);
    settle_locked(pool, waits);
}

void pool_end_since(struct allocation *allocation, uint64_t waits)
{
    if (allocation && allocation->pool)
        refund_pool(allocation->pool, allocation->size, waits);
    if (allocation)
        cuda_advice_destroy(allocation->advice);
    free(allocation);
}

void pool_end(struct allocation *allocation)
{
    pool_end_since(allocation, stream_waits());
}

/* The context owns the memory, or the primary one of the pool's device. */
static struct allocation like_of(uint64_t handle, const struct pool *pool, struct context *context,
                                 uint64_t size)
{
    return (struct allocation){
        .size = size,
        .kind = pool->device ? &kind_pool : &kind_host_pool,
        .context =
            !pool->device || context->device == pool->device ? context : pool->device->primary,
        .pool = handle,
    };
}

static CUresult take_memory(struct heap *heap, const struct allocation *like, uint64_t *ret_address)
{
    CUresult result;

    memory_free_pending(heap, false);
    result = memory_take_like(heap, like, ret_address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        memory_free_pending(heap, true);
        result = memory_take_like(heap, like, ret_address);
    }
    return result;
}

static uint64_t current_pool(struct device *device)
{
    POOLS_LOCKED;

    return pools.current[device->ordinal];
}

/* A copy of a pool that can be allocated from. */
static bool pool_copy(CUmemoryPool handle, struct pool *ret_pool)
{
    POOLS_LOCKED;
    const struct pool *pool = pool_lookup_locked((uint64_t)handle);

    if (!pool || pool->sharing.imported)
        return false;
    *ret_pool = *pool;
    return true;
}

static CUresult take_charged(uint64_t handle, const struct pool *pool, struct context *context,
                             size_t size, CUdeviceptr *ret_address)
{
    const struct allocation like = like_of(handle, pool, context, size);
    uint64_t address;
    CUresult result = charge_pool(handle, size);

    if (result != CUDA_SUCCESS)
        return result;
    result = take_memory(pool->heap, &like, &address);
    if (result != CUDA_SUCCESS)
        refund_pool(handle, size, stream_waits());
    else
        *ret_address = address;
    return result;
}

/* Graphs have memory of devices only. */
static bool capture_takes(struct stream *stream, const struct pool *pool, size_t size,
                          CUdeviceptr *ret_address, CUresult *ret_result)
{
    if (pool->device)
        return capture_takes_allocation(stream, pool->device->ordinal, size, ret_address,
                                        ret_result);
    *ret_result = CUDA_ERROR_NOT_SUPPORTED;
    return capture_is_on(&stream->capture);
}

/* `handle` 0 is the current pool of the stream's device. */
static CUresult allocate(CUdeviceptr *dptr, size_t bytesize, uint64_t handle, CUstream hStream)
{
    struct context *context;
    struct stream *stream;
    struct pool pool;
    uint64_t address;
    CUresult result = stream_enter_context(hStream, &context);

    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        handle = current_pool(stream->device);
    if (!pool_copy((CUmemoryPool)handle, &pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytesize == 0) {
        *dptr = 0; /* as NVIDIA's driver, unlike cuMemAlloc */
        return CUDA_SUCCESS;
    }
    if (capture_takes(stream, &pool, bytesize, dptr, &result))
        return result;
    if (pool_pending_take(handle, stream->handle, bytesize, &address)) {
        *dptr = address;
        return CUDA_SUCCESS;
    }
    return take_charged(handle, &pool, context, bytesize, dptr);
}

CUresult client_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return allocate(dptr, bytesize, 0, hStream);
}

CUresult client_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                        CUstream hStream)
{
    return pool ? allocate(dptr, bytesize, (uint64_t)pool, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct allocation allocation;
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result != CUDA_SUCCESS || dptr == 0 || capture_takes_free(stream, dptr, &result))
        return result;
    if (!address_map_find(dptr, &allocation) || allocation.address != dptr ||
        !allocation.kind->free_async)
        return CUDA_ERROR_INVALID_VALUE;
    return allocation.kind->free_async(&allocation, stream);
}

/* ---- pools ---- */

static void set_shareable(uint64_t handle, bool shareable)
{
    POOLS_LOCKED;
    struct pool *pool = pool_lookup_locked(handle);

    if (pool)
        pool->sharing.shareable = shareable;
}

CUresult client_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    bool on_host = cuda_pool_is_on_host(&poolProps->location);
    struct device *device = on_host ? NULL : device_lookup(poolProps->location.id);
    uint64_t handle;
    CUresult result = cuda_pool_check(poolProps);

    if (result == CUDA_SUCCESS && !on_host && !device)
        result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS)
        result = recovery_client_error();
    if (result != CUDA_SUCCESS)
        return result;
    handle = pool_create(device, poolProps->maxSize);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    set_shareable(handle, poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE);
    *pool = (CUmemoryPool)handle;
    return CUDA_SUCCESS;
}

static bool is_default(const struct pool *pool, CUmemoryPool handle)
{
    return pool->device && pools.defaults[pool->device->ordinal] == (uint64_t)handle;
}

/* Allocations from the pool stay until they are freed. */
CUresult client_cuMemPoolDestroy(CUmemoryPool handle)
{
    if (!pool_places_leave((uint64_t)handle))
        return CUDA_ERROR_INVALID_VALUE;
    POOLS_LOCKED;
    struct pool *pool = pool_lookup_locked((uint64_t)handle);

    if (!pool || is_default(pool, handle))
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device && pools.current[pool->device->ordinal] == (uint64_t)handle)
        pools.current[pool->device->ordinal] = pools.defaults[pool->device->ordinal];
    handles_remove(&client->handles, CLIENT_POOL, (uint64_t)handle);
    free(pool);
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    if (!device_lookup(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool_out = (CUmemoryPool)pools.defaults[dev];
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = (CUmemoryPool)current_pool(device);
    return CUDA_SUCCESS;
}

CUresult client_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
    struct device *device = device_lookup(dev);
    struct pool *pool;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    POOLS_LOCKED;
    pool = pool_lookup_locked((uint64_t)handle);
    if (!pool || pool->device != device || pool->sharing.imported)
        return CUDA_ERROR_INVALID_VALUE;
    pools.current[dev] = (uint64_t)handle;
    return CUDA_SUCCESS;
}

/* The pool, with what is ready to go back to it; the lock is held on success. */
static struct pool *pool_look_at(CUmemoryPool handle)
{
    struct pool *pool, copy;

    if (!pool_copy(handle, &copy))
        return NULL;
    memory_free_pending(copy.heap, false);
    pthread_mutex_lock(&pools.lock);
    pool = pool_lookup_locked((uint64_t)handle);
    if (pool)
        settle_locked(pool, pool->waits);
    else
        pthread_mutex_unlock(&pools.lock);
    return pool;
}

CUresult client_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
    struct pool *pool = value ? pool_look_at(handle) : NULL;
    CUresult result;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    result = cuda_pool_get(&pool->count, attr, value);
    pthread_mutex_unlock(&pools.lock);
    return result;
}

/* How blocks are reused does not depend on the settings, which programs only read back. */
CUresult client_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
    struct pool *pool = value ? pool_look_at(handle) : NULL;
    CUresult result;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    result = cuda_pool_set(&pool->count, attr, value);
    pthread_mutex_unlock(&pools.lock);
    return result;
}

CUresult client_cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
    struct pool *pool = pool_look_at(handle);
    struct heap *heap;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_pool_release(&pool->count, minBytesToKeep);
    heap = pool->heap;
    pthread_mutex_unlock(&pools.lock);
    heap_trim(heap, minBytesToKeep);
    return CUDA_SUCCESS;
}
