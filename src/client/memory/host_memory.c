/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory: shared pages inside the window, at one address for the program, the server
 * and the device.
 */
#include <stdlib.h>

#include "client_capture.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "stream_wait.h"

#define HOST_FLAGS \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)

const struct memory_kind kind_pinned = {.place = PLACE_PINNED};

CUresult client_cuMemHostAlloc(void **pp, size_t bytesize, unsigned Flags)
{
    struct allocation like = {.size = bytesize, .kind = &kind_pinned, .flags = Flags};
    uint64_t address;
    CUresult result = context_enter_unsafe(&like.context);

    if (Flags & ~(unsigned)HOST_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (bytesize == 0) {
        *pp = NULL; /* as NVIDIA's driver, unlike cuMemAlloc */
        return CUDA_SUCCESS;
    }
    result = memory_take_like(memory_host_heap(), &like, &address);
    if (result == CUDA_SUCCESS)
        *pp = (void *)(uintptr_t)address;
    return result;
}

CUresult client_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return client_cuMemHostAlloc(pp, bytesize, CU_MEMHOSTALLOC_DEVICEMAP);
}

static bool find_pinned(const void *p, struct allocation *ret_allocation)
{
    return address_map_find((uintptr_t)p, ret_allocation) &&
           ret_allocation->kind->place == PLACE_PINNED && !ret_allocation->kind->managed &&
           ret_allocation->kind != &kind_host_pool;
}

CUresult client_cuMemFreeHost(void *p)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (!p && result == CUDA_ERROR_INVALID_CONTEXT && context_is_none())
        return CUDA_SUCCESS;
    if (result != CUDA_SUCCESS || !p)
        return result;
    if (!address_map_find((uintptr_t)p, &allocation) || allocation.address != (uintptr_t)p ||
        allocation.kind != &kind_pinned)
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_drain_all();
    if (result != CUDA_SUCCESS)
        return result;
    free(heap_give(memory_host_heap(), allocation.address));
    return client_sync_error();
}

CUresult client_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned Flags)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_current(&context);

    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!find_pinned(p, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = allocation_on_device(&allocation, (uintptr_t)p);
    return CUDA_SUCCESS;
}

CUresult client_cuMemHostGetFlags(unsigned *pFlags, void *p)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!find_pinned(p, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = allocation.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}
