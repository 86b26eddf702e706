/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: cuMemAlloc and cuMemFree, and questions about it. */
#include <stdlib.h>

#include "client_capture.h"
#include "client_ipc.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "managed_hooks.h"
#include "pool_pending.h"
#include "stream_wait.h"
#include "wire_calls.h"

static CUresult take_device_memory(struct context *context, uint64_t size, uint64_t *ret_address)
{
    return memory_take(memory_device_heap(context->device), &kind_device, context, size,
                       ret_address);
}

CUresult client_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct context *context;
    uint64_t address;
    CUresult result = context_enter_unsafe(&context);

    if (bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (bytesize > context->device->record->total_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_free_pending(memory_device_heap(context->device), false);
    result = take_device_memory(context, bytesize, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        memory_free_pending(memory_device_heap(context->device), true);
        managed_hooks.trim();
        result = take_device_memory(context, bytesize, &address);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY &&
        managed_hooks.free_capacity(context->device->part, bytesize))
        result = take_device_memory(context, bytesize, &address);
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

    if (WidthInBytes == 0 || Height == 0 || pitch < WidthInBytes || pitch > SIZE_MAX / Height)
        return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    result = client_cuMemAlloc_v2(dptr, pitch * Height);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

static CUresult give_device_memory(const struct allocation *allocation)
{
    if (pool_is_pending(allocation->address))
        return CUDA_ERROR_INVALID_VALUE;
    ipc_withdraw_at(allocation->address);
    free(heap_give(memory_device_heap(allocation->context->device), allocation->address));
    return CUDA_SUCCESS;
}

const struct memory_kind kind_device = {
    .place = PLACE_DEVICE,
    .has_ipc_handle = true,
    .free = give_device_memory,
    .free_async = pool_give_async,
};

/* Waits only for this client's work, and only if there is any. */
CUresult client_cuMemFree_v2(CUdeviceptr dptr)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (!dptr && result == CUDA_ERROR_INVALID_CONTEXT && context_is_none())
        return CUDA_SUCCESS;
    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    if (!address_map_find(dptr, &allocation) || allocation.address != dptr ||
        !allocation.kind->free)
        return CUDA_ERROR_INVALID_VALUE;
    result = allocation.kind->place == PLACE_DEVICE
                 ? stream_drain_device(allocation.context->device)
                 : stream_drain_all();
    if (result == CUDA_SUCCESS)
        result = allocation.kind->free(&allocation);
    return result == CUDA_SUCCESS ? client_sync_error() : result;
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
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!address_map_find(dptr, &allocation) || address_map_place(dptr, 1) == PLACE_NOWHERE)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = allocation.address;
    if (psize)
        *psize = allocation.size;
    return CUDA_SUCCESS;
}
