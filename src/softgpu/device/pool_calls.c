/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. A pool counts and keeps nothing: memory is new when it is allocated
 * and gone when the stream has come to its free.
 */
#include <stdlib.h>

#include "soft_context.h"
#include "soft_graph_launch.h"
#include "soft_memory.h"
#include "soft_stream.h"

struct pool {
    uint64_t handle;
    struct device *device;
    uint64_t release_threshold;
    int reuse[3];
    uint64_t used, used_high, most; /* most: 0 = no bound of its own */
};

struct pool_free {
    struct operation operation;
    uint64_t address;
};

static struct pool defaults[SOFT_MAX_DEVICES];
static uint64_t current[SOFT_MAX_DEVICES]; /* 0 = the default one */

static void pool_open(struct pool *pool, struct device *device)
{
    *pool = (struct pool){.device = device, .reuse = {1, 1, 1}};
    pool->handle = soft_add(SOFT_POOL, pool);
}

static struct pool *pool_of_locked(struct device *device)
{
    struct pool *pool = &defaults[device->ordinal];

    if (!pool->handle)
        pool_open(pool, device);
    return pool;
}

static struct pool *current_pool_locked(struct device *device)
{
    struct pool *pool = soft_get(SOFT_POOL, (void *)current[device->ordinal]);

    return pool ? pool : pool_of_locked(device);
}

/* The pool may be gone already. */
void pool_refund_locked(const struct memory *memory)
{
    struct pool *pool = soft_get(SOFT_POOL, (void *)memory->pool);

    if (pool)
        pool->used -= memory->charged;
}

static void count_use(struct pool *pool, uint64_t size)
{
    pool->used += size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
}

static bool has_room(const struct pool *pool, uint64_t size)
{
    return !pool->most || (size <= pool->most && pool->used <= pool->most - size);
}

static CUresult allocate_locked(struct pool *pool, struct stream *stream, size_t bytesize,
                                struct memory **ret_memory)
{
    struct context *context = stream->context;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (has_room(pool, bytesize))
        result = memory_allocate_locked(context, MEMORY_DEVICE, bytesize, ret_memory);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    /* Frees that are still queued may make room. */
    result = context_synchronise_locked(context);
    if (result)
        return result;
    if (!has_room(pool, bytesize))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return memory_allocate_locked(context, MEMORY_DEVICE, bytesize, ret_memory);
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

    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (result)
        return result;
    found = soft_get(SOFT_POOL, pool);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    if (found->device != stream->context->device)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (capture_is_on(&stream->capture))
        return capture_locked(stream, bytesize, dptr);
    result = allocate_locked(found, stream, bytesize, &memory);
    if (result)
        return result;
    memory->pool = found->handle;
    count_use(found, memory->charged);
    *dptr = memory->address;
    return CUDA_SUCCESS;
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

    if (memory)
        memory_free_locked(memory);
    return true;
}

static const struct operation_type pool_free_type = {.start_locked = pool_free_start_locked};

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
    if (!memory || memory->address != dptr || memory->kind != MEMORY_DEVICE)
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

    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    *pool_out = (CUmemoryPool)pool_of_locked(device)->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    struct device *device = device_get(dev);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    *pool = (CUmemoryPool)current_pool_locked(device)->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct device *device;
    struct pool *made;

    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE || poolProps->handleTypes)
        return CUDA_ERROR_NOT_SUPPORTED;
    device = device_get(poolProps->location.id);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    made = malloc(sizeof(*made));
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    SOFT_LOCKED;
    pool_open(made, device);
    if (!made->handle) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->most = poolProps->maxSize;
    *pool = (CUmemoryPool)made->handle;
    return CUDA_SUCCESS;
}

/* A handle that is gone is nobody's current pool: then it is the default one. */
CUresult soft_cuMemPoolDestroy(CUmemoryPool pool)
{
    struct pool *found;
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, pool);
    if (!found || found == &defaults[found->device->ordinal])
        return CUDA_ERROR_INVALID_VALUE;
    handles_remove(&soft_handles, SOFT_POOL, found->handle);
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
    if (!found || found->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    current[device->ordinal] = found->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct pool *found;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = found->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = found->release_threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = found->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = found->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult soft_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct pool *found;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        found->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value != 0;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        found->release_threshold = *(cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value != 0)
            return CUDA_ERROR_INVALID_VALUE;
        found->used_high = found->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult soft_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    SOFT_LOCKED;

    return soft_get(SOFT_POOL, pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
