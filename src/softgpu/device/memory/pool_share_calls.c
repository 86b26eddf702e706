/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of other processes (pool_token.h), and the pools of places. */
#include <string.h>

#include "ipc_calls.h"
#include "ipc_memory_open.h"
#include "pool_calls.h"
#include "soft_arena.h"
#include "soft_context.h"
#include "soft_pool.h"

_Static_assert(sizeof(CUmemPoolPtrExportData) == POOL_POINTER_SIZE, "CUDA's size of a name");

CUresult soft_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                               CUmemAllocationHandleType handleType,
                                               unsigned long long flags)
{
    struct pool *found;
    int fd;

    if (!handle_out || !cuda_pool_is_descriptor(handleType, flags))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    if (!found || !found->shareable || found->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool_token_is_set(&found->token) && pool_token_make(found->device->number, &found->token))
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (pool_token_write(&found->token, &fd))
        return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(handle_out, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

static struct device *device_with_number(unsigned number)
{
    for (unsigned i = 0; i < devices_count(); i++)
        if (device_get((CUdevice)i)->number == number)
            return device_get((CUdevice)i);
    return NULL;
}

CUresult soft_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                 CUmemAllocationHandleType handleType,
                                                 unsigned long long flags)
{
    struct pool_token token;
    struct device *device;

    if (!cuda_pool_is_descriptor(handleType, flags) ||
        pool_token_read((int)(intptr_t)handle, &token))
        return CUDA_ERROR_INVALID_VALUE;
    device = device_with_number(token.device);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    return pool_import_locked(device, &token, pool_out);
}

CUresult soft_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    unsigned char handle[POOL_POINTER_SIZE];
    struct context *context;
    struct memory *memory;
    struct pool *pool;
    CUresult result;

    SOFT_LOCKED;
    result = context_use_locked(&context);
    if (result)
        return result;
    memory = memory_find_locked(ptr);
    pool = memory ? soft_get(SOFT_POOL, (void *)memory->pool) : NULL;
    if (!pool || memory->address != ptr || !memory_is_in_arena(memory) ||
        !pool_token_is_set(&pool->token))
        return CUDA_ERROR_INVALID_VALUE;
    result = ipc_name_locked(memory, handle);
    if (!result)
        pool_pointer_write(shareData_out, handle, &pool->token);
    return result;
}

/* A pool is a device's, so no context has to be current. */
CUresult soft_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                     CUmemPoolPtrExportData *shareData)
{
    unsigned char handle[POOL_POINTER_SIZE];
    struct context *context;
    struct pool *found;
    CUresult result;

    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    if (!found || !found->imported || !pool_pointer_read(shareData, &found->token, handle))
        return CUDA_ERROR_INVALID_VALUE;
    result = context_use_locked(&context);
    if (result == CUDA_ERROR_INVALID_CONTEXT) {
        context = found->device->primary;
        result = CUDA_SUCCESS;
    }
    return result ? result : ipc_open_locked(context, handle, true, ptr_out);
}

/* ---- other devices ---- */

static CUresult set_access_locked(const CUmemAccessDesc *access, struct pool *pool)
{
    const struct device *device = device_get(access->location.id);

    if (!pool->device && cuda_pool_is_on_host(&access->location))
        return cuda_pool_check_host_access(access);
    CUresult result = cuda_pool_check_access(access, device && device == pool->device);

    if (result || !device)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (pool->device)
        return device == pool->device ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        pool->reached_by &= ~(1u << device->ordinal);
    else
        pool->reached_by |= 1u << device->ordinal;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct pool *found;
    CUresult result = CUDA_SUCCESS;
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, pool);
    if (!found || (count > 0 && !map))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !result; i++)
        result = set_access_locked(&map[i], found);
    return result;
}

CUresult soft_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                                 CUmemLocation *location)
{
    const struct pool *found;
    const struct device *device = device_get(location->id);
    SOFT_LOCKED;

    found = soft_get(SOFT_POOL, memPool);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    if (!found->device && cuda_pool_is_on_host(location)) {
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    }
    if (!device || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = device == found->device || found->reached_by >> device->ordinal & 1
                 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- pools of places ---- */

CUresult soft_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                     CUmemAllocationType type)
{
    CUresult result = cuda_pool_check_place(location, type);
    struct host_place *place;

    if (!result && !cuda_pool_is_on_host(location))
        return soft_cuDeviceGetDefaultMemPool(pool_out, location->id);
    SOFT_LOCKED;
    if (!result)
        result = host_place_locked(location, &place);
    if (!result)
        *pool_out = (CUmemoryPool)place->standard.handle;
    return result;
}

CUresult soft_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = cuda_pool_check_place(location, type);
    struct host_place *place;

    if (!result && !cuda_pool_is_on_host(location))
        return soft_cuDeviceGetMemPool(pool, location->id);
    SOFT_LOCKED;
    if (!result)
        result = host_place_locked(location, &place);
    if (!result)
        *pool = soft_get(SOFT_POOL, (void *)place->current) ? (CUmemoryPool)place->current
                                                            : (CUmemoryPool)place->standard.handle;
    return result;
}

CUresult soft_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult result = cuda_pool_check_place(location, type);
    const struct pool *found;
    struct host_place *place;

    if (!result && !cuda_pool_is_on_host(location))
        return soft_cuDeviceSetMemPool(location->id, pool);
    SOFT_LOCKED;
    found = soft_get(SOFT_POOL, pool);
    if (!result && (!found || found->device))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = host_place_locked(location, &place);
    if (!result)
        place->current = found->handle;
    return result;
}
