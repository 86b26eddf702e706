/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: cuMemAlloc and cuMemFree, and questions about it. */
#include "client_capture.h"
#include "client_ipc.h"
#include "client_memory.h"
#include "client_pool.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_vmm.h"
#include "graph_memory_free.h"
#include "managed_hooks.h"
#include "wire_calls.h"

CUresult client_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct context *context;
    uint64_t address;
    CUresult result = context_enter_unsafe(&context);

    if (!dptr || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (bytesize > context->device->record->total_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_reclaim(context->device, false);
    result =
        memory_take(memory_device_heap(context->device), context, bytesize, 0, false, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        memory_reclaim(context->device, true);
        managed_hooks.trim();
        result =
            memory_take(memory_device_heap(context->device), context, bytesize, 0, false, &address);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY &&
        managed_hooks.make_room(context->device->index, bytesize))
        result =
            memory_take(memory_device_heap(context->device), context, bytesize, 0, false, &address);
    if (result == CUDA_SUCCESS)
        *dptr = address;
    return result;
}

/* Rows begin at multiples of 512 bytes, where every kind of access is aligned and a texture may be
 * bound. */
CUresult client_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                   size_t Height, unsigned ElementSizeBytes)
{
    size_t pitch = (WidthInBytes + 511) & ~(size_t)511;
    CUresult result;

    if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0 || pitch < WidthInBytes ||
        pitch > SIZE_MAX / Height)
        return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    result = client_cuMemAlloc_v2(dptr, pitch * Height);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

/* Managed memory is host memory that the device reaches, but it is freed by this call. */
static struct heap *heap_of_device_pointer(uint64_t address)
{
    struct allocation allocation;
    enum place place;

    if (!memory_find(address, &allocation, &place) || allocation.address != address)
        return NULL;
    if (place == PLACE_PINNED)
        return allocation.managed ? memory_host_heap() : NULL;
    if (vmm_is_reserved(address) || ipc_find(address, &allocation) || !client_in_window(address))
        return NULL;
    return memory_device_heap(memory_device_of(address));
}

/* Waits only for this client's work, and only if there is any. */
CUresult client_cuMemFree_v2(CUdeviceptr dptr)
{
    struct context *context;
    struct heap *heap;
    CUresult result = context_enter_unsafe(&context);

    if (result != CUDA_SUCCESS || dptr == 0 || ipc_takes_free(dptr, true, &result))
        return result;
    heap = heap_of_device_pointer(dptr);
    if (!heap)
        return CUDA_ERROR_INVALID_VALUE;
    result =
        stream_drain_device(heap == memory_host_heap() ? context->device : memory_device_of(dptr));
    if (result != CUDA_SUCCESS)
        return result;
    if (graph_memory_takes_free(dptr, NULL, &result) || managed_takes_free(dptr, &result))
        return result;
    ipc_withdraw(dptr);
    pool_end(heap_give(heap, dptr));
    return client_sync_error();
}

CUresult client_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct wire_cuMemGetInfo_v2 in = {0};
    struct wire_cuMemGetInfo_v2_reply out;
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    in.device = context->device->index;
    result = wire_cuMemGetInfo_v2(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS)
        return result;
    if (free_bytes)
        *free_bytes = out.free + heap_unused(memory_device_heap(context->device));
    if (total)
        *total = out.total;
    return CUDA_SUCCESS;
}

CUresult client_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct allocation allocation;
    struct context *context;
    enum place place;
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!memory_find(dptr, &allocation, &place) && !memory_find_global(dptr, &allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (vmm_is_reserved(dptr) && !vmm_covers(dptr, 1))
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = allocation.address;
    if (psize)
        *psize = allocation.size;
    return CUDA_SUCCESS;
}
