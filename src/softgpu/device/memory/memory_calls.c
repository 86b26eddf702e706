/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory and managed memory: allocation and what is left of it.
 */
#include "device_sync.h"
#include "graph_memory.h"
#include "ipc_calls.h"
#include "ipc_memory_open.h"
#include "managed_attach.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

static CUresult allocate_memory(enum memory_kind kind, uint64_t size, unsigned flags,
                                uint64_t *ret_address)
{
    struct context *context;
    struct memory *memory;
    SOFT_LOCKED;
    CUresult result = capture_unsafe_locked();

    if (!result)
        result = context_use_locked(&context);
    if (!result)
        result = memory_allocate_locked(context, kind, size, &memory);
    if (result)
        return result;
    memory->flags = flags;
    if (kind == MEMORY_MANAGED)
        managed_attach_first_locked(memory, flags);
    *ret_address = memory->address;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    uint64_t address;

    CUresult result = allocate_memory(MEMORY_DEVICE, bytesize, 0, &address);

    if (!result)
        *dptr = address;
    return result;
}

/* The graph may allocate it again. `result` is that of waiting for the context. */
static CUresult free_of_graph_locked(struct graph_memory *memory, CUresult result)
{
    CUresult refusal = graph_memory_check_free_locked(memory);

    if (refusal)
        return refusal;
    graph_memory_freed_locked(memory);
    return result;
}

/* Freeing waits for the context, as on hardware, so no kernel loses memory that it is using. */
static CUresult free_after_work(uint64_t address, enum memory_kind kind, enum memory_kind other)
{
    struct memory *memory;
    struct context *context;
    CUresult result;
    SOFT_LOCKED;

    result = capture_unsafe_locked();
    if (!result)
        result = context_use_locked(&context);
    if (result)
        return result;
    memory = memory_find_locked(address);
    if (!memory || memory->address != address ||
        (memory->kind != kind && memory->kind != other && !memory->pool &&
         !ipc_is_of_pool_locked(memory)))
        return CUDA_ERROR_INVALID_VALUE;
    result = device_sync_locked(memory->context);
    memory = memory_find_locked(address);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_memory_find_locked(address))
        return free_of_graph_locked(graph_memory_find_locked(address), result);
    if (ipc_is_last_open_locked(memory))
        memory_free_locked(memory);
    return result;
}

CUresult soft_cuMemFree_v2(CUdeviceptr dptr)
{
    return dptr ? free_after_work(dptr, MEMORY_DEVICE, MEMORY_MANAGED) : CUDA_SUCCESS;
}

CUresult soft_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    uint64_t address;

    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate_memory(MEMORY_MANAGED, bytesize, flags, &address);

    if (!result)
        *dptr = address;
    return result;
}

CUresult soft_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                 size_t Height, unsigned int ElementSizeBytes)
{
    const size_t unit = 512;
    size_t pitch, size;

    if (WidthInBytes == 0 || Height == 0 || WidthInBytes > SIZE_MAX - unit)
        return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    pitch = (WidthInBytes + unit - 1) & ~(unit - 1);
    if (__builtin_mul_overflow(pitch, Height, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = soft_cuMemAlloc_v2(dptr, size);

    if (!result)
        *pPitch = pitch;
    return result;
}

CUresult soft_cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct context *context;

    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (result)
        return result;
    *free = context->device->memory_size - context->device->memory_used;
    *total = context->device->memory_size;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    const struct memory *memory;
    uint64_t start, size;
    SOFT_LOCKED;

    memory = memory_find_locked(dptr);
    if (!memory || !memory->access || !memory_extent_locked(memory, dptr, &start, &size))
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = start;
    if (psize)
        *psize = size;
    return CUDA_SUCCESS;
}
