/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: cuMemAlloc and cuMemFree, and what is known of an address. */
#include <stdlib.h>

#include "cleanup.h"
#include "client_ipc.h"
#include "client_managed.h"
#include "client_memory.h"
#include "client_pool.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_vmm.h"
#include "host_register.h"
#include "wire_calls.h"

struct device *memory_device_of(uint64_t address)
{
    return device_with_index((address - client->window_base) / client->device_stride);
}

static bool is_in_window(uint64_t address)
{
    return address >= client->window_base && address < client->window_end;
}

static bool find_in_window(uint64_t address, struct allocation *ret_allocation,
                           enum place *ret_place)
{
    struct device *device;

    if (address >= client->host_base) {
        *ret_place = PLACE_PINNED;
        return heap_find(&client->host_heap, address, ret_allocation) ||
               host_register_find(address, ret_allocation);
    }
    *ret_place = PLACE_DEVICE;
    device = memory_device_of(address);
    return device &&
           (heap_find(&device->heap, address, ret_allocation) || ipc_find(address, ret_allocation));
}

bool memory_find(uint64_t address, struct allocation *ret_allocation, enum place *ret_place)
{
    if (vmm_is_reserved(address)) {
        *ret_place = PLACE_DEVICE;
        return vmm_find(address, ret_allocation);
    }
    if (managed_find(address, ret_allocation)) {
        *ret_place = PLACE_DEVICE;
        return true;
    }
    if (is_in_window(address))
        return find_in_window(address, ret_allocation, ret_place);
    *ret_place = PLACE_PINNED;
    return host_register_find(address, ret_allocation);
}

static bool in_global(uint64_t address, uint64_t size, bool *ret_whole)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct range *range = ranges_find(&client->globals, address);

    *ret_whole = range && size <= range->size - (address - range->start);
    return range != NULL;
}

/* A part of what is not registered belongs to the program alone. */
static enum place place_outside(uint64_t address, uint64_t size)
{
    struct allocation allocation;
    bool whole;

    if (host_register_find(address, &allocation))
        return size <= allocation.size - (address - allocation.address) ? PLACE_PINNED
                                                                        : PLACE_PAGEABLE;
    if (client->globals.count == 0 || !in_global(address, size, &whole))
        return PLACE_PAGEABLE;
    return whole ? PLACE_DEVICE : PLACE_NOWHERE;
}

enum place memory_place(uint64_t address, uint64_t size)
{
    struct allocation allocation;
    enum place place;

    if (vmm_is_reserved(address))
        return vmm_covers(address, size) ? PLACE_DEVICE : PLACE_NOWHERE;
    if (!is_in_window(address))
        return place_outside(address, size);
    if (!find_in_window(address, &allocation, &place))
        return PLACE_NOWHERE;
    return size <= allocation.size - (address - allocation.address) ? place : PLACE_NOWHERE;
}

bool memory_find_global(uint64_t address, struct allocation *ret_variable)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct range *range = ranges_find(&client->globals, address);

    if (range)
        *ret_variable = *(const struct allocation *)range->value;
    return range != NULL;
}

void memory_add_global(struct allocation *variable)
{
    pthread_mutex_lock(&client->lock);
    ranges_add(&client->globals, variable->address, variable->size, variable);
    pthread_mutex_unlock(&client->lock);
}

void memory_remove_global(uint64_t address)
{
    pthread_mutex_lock(&client->lock);
    ranges_remove(&client->globals, address, NULL);
    pthread_mutex_unlock(&client->lock);
}

CUresult memory_take_like(struct heap *heap, const struct allocation *like, uint64_t *ret_address)
{
    struct allocation *allocation = malloc(sizeof(*allocation));
    CUresult result;

    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *allocation = *like;
    allocation->id = client_next_id();
    result = heap_take(heap, allocation);
    if (result != CUDA_SUCCESS) {
        free(allocation);
        return result;
    }
    *ret_address = allocation->address;
    return CUDA_SUCCESS;
}

CUresult memory_take(struct heap *heap, struct context *context, uint64_t size, unsigned flags,
                     bool managed, uint64_t *ret_address)
{
    const struct allocation like = {
        .size = size, .context = context, .flags = flags, .managed = managed};

    return memory_take_like(heap, &like, ret_address);
}

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
    result = memory_take(&context->device->heap, context, bytesize, 0, false, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        memory_reclaim(context->device, true);
        result = memory_take(&context->device->heap, context, bytesize, 0, false, &address);
    }
    if (result == CUDA_SUCCESS)
        *dptr = address;
    return result;
}

/* Rows begin where every kind of access is aligned and a texture may be bound. */
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

/* Managed memory is host memory that the device reaches: freed like that, but by this call. */
static struct heap *heap_of_device_pointer(uint64_t address)
{
    struct allocation allocation;
    enum place place;

    if (!memory_find(address, &allocation, &place) || allocation.address != address)
        return NULL;
    if (place == PLACE_PINNED)
        return allocation.managed ? &client->host_heap : NULL;
    if (vmm_is_reserved(address) || managed_holds(address) || ipc_find(address, &allocation))
        return NULL;
    return &memory_device_of(address)->heap;
}

/* Waits for this client's work alone, and only where there is any. */
CUresult client_cuMemFree_v2(CUdeviceptr dptr)
{
    struct context *context;
    struct heap *heap;
    CUresult result = context_enter_unsafe(&context);

    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    heap = heap_of_device_pointer(dptr);
    if (!heap)
        return CUDA_ERROR_INVALID_VALUE;
    result =
        stream_drain_device(heap == &client->host_heap ? context->device : memory_device_of(dptr));
    if (result != CUDA_SUCCESS)
        return result;
    if (graph_memory_takes_free(dptr, NULL, &result))
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
        *free_bytes = out.free + heap_unused(&context->device->heap);
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
    if (pbase)
        *pbase = allocation.address;
    if (psize)
        *psize = allocation.size;
    return CUDA_SUCCESS;
}

static void free_all_in(struct heap *heap, struct context *context)
{
    struct allocation allocation;

    while (heap_next(heap, context, 0, &allocation)) {
        ipc_withdraw(allocation.address);
        pool_end(heap_give(heap, allocation.address));
    }
}

void memory_free_all(struct context *context)
{
    memory_reclaim(context->device, client_error() == CUDA_SUCCESS);
    free_all_in(&context->device->heap, context);
    free_all_in(&client->host_heap, context);
    host_register_end_all(context);
    ipc_close_all(context);
}
