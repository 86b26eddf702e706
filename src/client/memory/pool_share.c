/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that other processes and devices use. An exported pool is only a name (pool_token.h); each
 * of its allocations is opened by a handle, as memory of cuIpcGetMemHandle is.
 */
#include <string.h>
#include <unistd.h>

#include "client_ipc.h"
#include "client_peer_access.h"
#include "client_pool.h"
#include "client_prototypes.h"
#include "cuda_pool.h"

_Static_assert(sizeof(CUmemPoolPtrExportData) == POOL_POINTER_SIZE, "CUDA's size of a name");

/* ---- other processes ---- */

CUresult client_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                                 CUmemAllocationHandleType handleType,
                                                 unsigned long long flags)
{
    struct pool_sharing sharing;
    int fd;

    if (!handle_out || !cuda_pool_is_descriptor(handleType, flags) ||
        !pool_sharing_get(pool, &sharing) || !sharing.shareable || sharing.imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool_token_is_set(&sharing.token) &&
        pool_token_make(sharing.device->index, &sharing.token))
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (pool_token_write(&sharing.token, &fd))
        return CUDA_ERROR_OPERATING_SYSTEM;
    pool_sharing_set(pool, &sharing);
    memcpy(handle_out, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

/* The descriptor stays the program's. */
CUresult client_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                   CUmemAllocationHandleType handleType,
                                                   unsigned long long flags)
{
    struct pool_token token;
    struct device *device;
    CUmemoryPool pool;

    if (!cuda_pool_is_descriptor(handleType, flags) ||
        pool_token_read((int)(intptr_t)handle, &token))
        return CUDA_ERROR_INVALID_VALUE;
    device = device_with_index(token.device);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    pool = pool_import(device, &token);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pool_out = pool;
    return CUDA_SUCCESS;
}

CUresult client_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    struct allocation allocation;
    struct pool_sharing sharing;
    unsigned char handle[POOL_POINTER_SIZE];
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!address_map_find(ptr, &allocation) || allocation.address != ptr ||
        allocation.kind != &kind_pool ||
        !pool_sharing_get((CUmemoryPool)allocation.pool, &sharing) ||
        !pool_token_is_set(&sharing.token))
        return CUDA_ERROR_INVALID_VALUE;
    result = ipc_name_allocation(&allocation, handle);
    if (result == CUDA_SUCCESS)
        pool_pointer_write(shareData_out, handle, &sharing.token);
    return result;
}

/* A pool is a device's, so no context has to be current. */
static struct context *owner_of_import(const struct pool_sharing *sharing)
{
    struct context *context;

    return context_current(&context) == CUDA_SUCCESS ? context : sharing->device->primary;
}

CUresult client_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                       CUmemPoolPtrExportData *shareData)
{
    struct pool_sharing sharing;
    unsigned char handle[POOL_POINTER_SIZE];
    CUresult result = client_error();

    if (result != CUDA_SUCCESS)
        return result;
    if (!pool_sharing_get(pool, &sharing) || !sharing.imported ||
        !pool_pointer_read(shareData, &sharing.token, handle))
        return CUDA_ERROR_INVALID_VALUE;
    return ipc_open(owner_of_import(&sharing), handle, &kind_imported, ptr_out);
}

/* ---- other devices ---- */

/* What a device has been allowed stays mapped for it. Every device reaches page-locked memory. */
static CUresult set_access(const CUmemAccessDesc *access, struct pool_sharing *sharing)
{
    struct device *device = device_lookup(access->location.id);

    if (!sharing->device && cuda_pool_is_on_host(&access->location))
        return cuda_pool_check_host_access(access);
    CUresult result = cuda_pool_check_access(access, device && device == sharing->device);

    if (result != CUDA_SUCCESS || !device)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    if (device == sharing->device)
        return CUDA_SUCCESS;
    if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        sharing->reached_by &= ~(1u << device->ordinal);
        return CUDA_SUCCESS;
    }
    if (sharing->device)
        result = peer_reach(device, sharing->device);
    if (result == CUDA_SUCCESS)
        sharing->reached_by |= 1u << device->ordinal;
    return result;
}

CUresult client_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct pool_sharing sharing;
    CUresult result = client_error();

    if (result != CUDA_SUCCESS)
        return result;
    if ((count > 0 && !map) || !pool_sharing_get(pool, &sharing))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = set_access(&map[i], &sharing);
    pool_sharing_set(pool, &sharing);
    return result;
}

CUresult client_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                                   CUmemLocation *location)
{
    const struct device *device = device_lookup(location->id);
    struct pool_sharing sharing;

    if (!pool_sharing_get(memPool, &sharing))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sharing.device && cuda_pool_is_on_host(location)) {
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    }
    if (!device || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = device == sharing.device || sharing.reached_by >> device->ordinal & 1
                 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
