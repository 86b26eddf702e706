/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_calls.h. */
#include "pool_calls.h"

#include <stdlib.h>

#include "cuda_pool.h"
#include "graph_pool.h"
#include "ipc_calls.h"
#include "ipc_memory_open.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

struct pool_free {
    struct operation operation;
    uint64_t address;
};

static struct list all_pools = {&all_pools, &all_pools};
static struct pool defaults[SOFT_MAX_DEVICES];
static uint64_t current[SOFT_MAX_DEVICES]; /* 0 = the default one */

static void pool_open_locked(struct pool *pool, struct device *device, uint64_t most)
{
    *pool = (struct pool){.device = device};
    cuda_pool_init(&pool->count, most);
    pool->handle = soft_add(SOFT_POOL, pool);
    if (pool->handle)
        list_append(&all_pools, &pool->link);
}

static struct host_place host_place, numa_place; /* all NUMA nodes share one */

CUresult host_place_locked(const CUmemLocation *location, struct host_place **ret_place)
{
    struct host_place *place =
        location->type == CU_MEM_LOCATION_TYPE_HOST ? &host_place : &numa_place;

    if (!place->standard.handle)
        pool_open_locked(&place->standard, NULL, 0);
    *ret_place = place;
    return place->standard.handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_default(const struct pool *pool)
{
    return pool == &host_place.standard || pool == &numa_place.standard ||
           (pool->device && pool == &defaults[pool->device->ordinal]);
}

static struct pool *pool_of_locked(struct device *device)
{
    struct pool *pool = &defaults[device->ordinal];

    if (!pool->handle)
        pool_open_locked(pool, device, 0);
    return pool;
}

static struct pool *current_pool_locked(struct device *device)
{
    struct pool *pool = soft_get(SOFT_POOL, (void *)current[device->ordinal]);

    return pool ? pool : pool_of_locked(device);
}

/* ---- what a pool keeps ---- */

static void unkeep_locked(struct pool *pool, uint64_t size)
{
    if (size > pool->kept)
        size = pool->kept;
    pool->kept -= size;
    if (pool->device)
        device_refund_locked(pool->device, size);
}

static void release_locked(struct pool *pool, uint64_t keep)
{
    uint64_t spare;

    cuda_pool_release(&pool->count, keep);
    spare = pool->count.reserved - pool->count.used;
    if (pool->kept > spare)
        unkeep_locked(pool, pool->kept - spare);
}

void pools_synchronized_locked(const struct device *device)
{
    list_for_each (struct pool, pool, &all_pools, link) {
        if (pool->device == device && pool->count.reserved > pool->count.threshold)
            release_locked(pool, pool->count.threshold);
    }
}

void pools_release_locked(const struct device *device)
{
    list_for_each (struct pool, pool, &all_pools, link) {
        if (pool->device == device)
            release_locked(pool, 0);
    }
}

/* The pool may be gone already. */
void pool_refund_locked(uint64_t handle, uint64_t size, uint64_t charged)
{
    struct pool *pool = soft_get(SOFT_POOL, (void *)handle);

    if (!pool)
        return;
    cuda_pool_give(&pool->count, size);
    if (pool->device && device_charge_locked(pool->device, charged))
        pool->kept += charged;
}

static CUresult take_locked(struct pool *pool, struct context *context, size_t size,
                            struct memory **ret_memory)
{
    CUresult result;

    if (!cuda_pool_has_capacity(&pool->count, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    unkeep_locked(pool, size);
    result = memory_allocate_locked(context, pool->device ? MEMORY_DEVICE : MEMORY_HOST, size,
                                    ret_memory);
    if (result)
        return result;
    (*ret_memory)->pool = pool->handle;
    cuda_pool_take(&pool->count, size);
    return CUDA_SUCCESS;
}

/* Waits for queued frees. The pool may be destroyed meanwhile. */
static CUresult allocate_locked(CUmemoryPool handle, struct context *context, size_t bytesize,
                                struct memory **ret_memory)
{
    struct pool *pool = soft_get(SOFT_POOL, handle);
    CUresult result = take_locked(pool, context, bytesize, ret_memory);

    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    result = context_synchronize_locked(context);
    if (result)
        return result;
    pool = soft_get(SOFT_POOL, handle);
    return pool ? take_locked(pool, context, bytesize, ret_memory) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult capture_locked(struct stream *stream, size_t bytesize, CUdeviceptr *ret_address)
{
    const CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                   .id = stream->context->device->ordinal}},
        .bytesize = bytesize,
    };

    return capture_allocate_locked(&stream->capture, &params, ret_address);
}

CUresult soft_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                      CUstream hStream)
{
    struct stream *stream;
    struct memory *memory;
    struct pool *found;

    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (result)
        return result;
    found = soft_get(SOFT_POOL, pool);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    if (found->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (found->device && found->device != stream->context->device)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (bytesize == 0) {
        *dptr = 0; /* unlike cuMemAlloc */
        return CUDA_SUCCESS;
    }
    if (capture_is_on(&stream->capture)) /* graphs have memory of devices only */
        return found->device ? capture_locked(stream, bytesize, dptr) : CUDA_ERROR_NOT_SUPPORTED;
    result = allocate_locked(pool, stream->context, bytesize, &memory);
    if (!result)
        *dptr = memory->address;
    return result;
}

static CUresult pool_of_stream(CUstream hStream, CUmemoryPool *ret_pool)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (!result)
        *ret_pool = (CUmemoryPool)current_pool_locked(stream->context->device)->handle;
    return result;
}

CUresult soft_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    CUmemoryPool pool;
    CUresult result = pool_of_stream(hStream, &pool);

    return result ? result : soft_cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
}

static bool pool_free_start_locked(struct operation *operation)
{
    struct memory *memory = memory_find_locked(((struct pool_free *)operation)->address);

    if (memory && ipc_is_last_open_locked(memory))
        memory_free_locked(memory);
    return true;
}

static const struct operation_type pool_free_type = {.start_locked = pool_free_start_locked};

static bool is_freed_behind(const struct memory *memory)
{
    return memory->kind == MEMORY_DEVICE || (memory->kind == MEMORY_HOST && memory->pool) ||
           ipc_is_of_pool_locked(memory);
}

CUresult soft_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct stream *stream;
    struct memory *memory;
    struct pool_free *operation;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (result || !dptr)
        return result;
    if (capture_is_on(&stream->capture))
        return capture_free_locked(&stream->capture, dptr);
    if (graph_memory_find_locked(dptr))
        return graph_memory_free_async_locked(graph_memory_find_locked(dptr), stream);
    memory = memory_find_locked(dptr);
    if (!memory || memory->address != dptr || !is_freed_behind(memory))
        return CUDA_ERROR_INVALID_VALUE;
    operation = operation_create(sizeof(*operation), &pool_free_type);
    if (!operation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    operation->address = dptr;
    schedule_enqueue_locked(stream, &operation->operation);
    operation_unref_locked(&operation->operation);
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    *pool_out = (CUmemoryPool)pool_of_locked(device)->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    *pool = (CUmemoryPool)current_pool_locked(device)->handle;
    return CUDA_SUCCESS;
}

CUresult pool_import_locked(struct device *device, const struct pool_token *token,
                            CUmemoryPool *ret_pool)
{
    struct pool *made = malloc(sizeof(*made));

    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool_open_locked(made, device, 0);
    if (!made->handle) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->imported = true;
    made->token = *token;
    *ret_pool = (CUmemoryPool)made->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    bool on_host = cuda_pool_is_on_host(&poolProps->location);
    struct device *device = on_host ? NULL : device_get(poolProps->location.id);
    CUresult result = cuda_pool_check(poolProps);
    struct pool *made;

    if (!result && !on_host && !device)
        result = CUDA_ERROR_INVALID_DEVICE;
    if (result)
        return result;
    made = malloc(sizeof(*made));
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    SOFT_LOCKED;
    pool_open_locked(made, device, poolProps->maxSize);
    made->shareable = poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
    if (!made->handle) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pool = (CUmemoryPool)made->handle;
    return CUDA_SUCCESS;
}

/* The handle of a destroyed pool is not a current pool: the default pool takes its place. */
CUresult soft_cuMemPoolDestroy(CUmemoryPool pool)
{
    struct pool *found;
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, pool);
    if (!found || is_default(found))
        return CUDA_ERROR_INVALID_VALUE;
    handles_remove(&soft_handles, SOFT_POOL, found->handle);
    unkeep_locked(found, found->kept);
    list_remove(&found->link);
    free(found);
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct device *device = device_get(dev);
    struct pool *found;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    if (!found || found->device != device || found->imported)
        return CUDA_ERROR_INVALID_VALUE;
    current[device->ordinal] = found->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    const struct pool *found;
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, pool);
    return found && value ? cuda_pool_get(&found->count, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct pool *found;
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, pool);
    return found && value ? cuda_pool_set(&found->count, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct pool *found;
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, pool);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    release_locked(found, minBytesToKeep);
    return CUDA_SUCCESS;
}
