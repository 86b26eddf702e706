/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. Each device has one pool, which keeps nothing: memory is new when it is
 * allocated and gone when the stream has come to its free.
 */
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

struct pool {
    uint64_t handle;
    struct device *device;
    uint64_t release_threshold;
    int reuse[3];
    uint64_t used, used_high;
};

struct pool_free {
    struct operation operation;
    uint64_t address;
};

static struct pool pools[SOFT_MAX_DEVICES];

static struct pool *pool_of_locked(struct device *device)
{
    struct pool *pool = &pools[device->ordinal];

    if (!pool->handle) {
        pool->device = device;
        pool->handle = soft_add(SOFT_POOL, pool);
        for (int i = 0; i < 3; i++)
            pool->reuse[i] = 1;
    }
    return pool;
}

static void count_use(struct pool *pool, uint64_t size)
{
    pool->used += size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
}

CUresult soft_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct stream *stream;
    struct memory *memory;

    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    if (result)
        return result;

    struct context *context = stream->context;

    result = memory_allocate_locked(context, MEMORY_DEVICE, bytesize, &memory);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        /* Frees that are still queued may make room. */
        if ((result = context_synchronise_locked(context)))
            return result;
        result = memory_allocate_locked(context, MEMORY_DEVICE, bytesize, &memory);
    }
    if (result)
        return result;
    count_use(pool_of_locked(context->device), memory->charged);
    *dptr = memory->address;
    return CUDA_SUCCESS;
}

static bool pool_free_start_locked(struct operation *operation)
{
    struct memory *memory = memory_find_locked(((struct pool_free *)operation)->address);

    if (memory) {
        struct pool *pool = pool_of_locked(memory->device);

        pool->used -= memory->charged < pool->used ? memory->charged : pool->used;
        memory_free_locked(memory);
    }
    return true;
}

static const struct operation_type pool_free_type = {.start_locked = pool_free_start_locked};

CUresult soft_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct stream *stream;
    struct memory *memory;
    struct pool_free *operation;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    if (result || !dptr)
        return result;
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
    return soft_cuDeviceGetDefaultMemPool(pool, dev);
}

CUresult soft_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct device *device = device_get(dev);
    struct pool *found;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    return found && found->device == device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
