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
#include "host_register.h"

#define HOST_FLAGS \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)

CUresult client_cuMemHostAlloc(void **pp, size_t bytesize, unsigned Flags)
{
    struct context *context;
    uint64_t address;
    CUresult result = context_enter_unsafe(&context);

    if (!pp || bytesize == 0 || Flags & ~(unsigned)HOST_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    result = memory_take(memory_host_heap(), context, bytesize, Flags, false, &address);
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
    enum place place;

    return memory_find((uintptr_t)p, ret_allocation, &place) && place == PLACE_PINNED;
}

CUresult client_cuMemFreeHost(void *p)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!p)
        return CUDA_SUCCESS;
    if (!find_pinned(p, &allocation) || allocation.address != (uintptr_t)p || allocation.managed ||
        allocation.host)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++)
        result = stream_drain_device(&client->devices[i]);
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

    if (!pdptr || Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!find_pinned(p, &allocation) || allocation.managed)
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = host_register_on_device((uintptr_t)p);
    return CUDA_SUCCESS;
}

CUresult client_cuMemHostGetFlags(unsigned *pFlags, void *p)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_current(&context);

    if (!pFlags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!find_pinned(p, &allocation) || allocation.managed)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = allocation.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}
