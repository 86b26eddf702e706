/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of graphs in the client: blocks of the device's heap, as those of pools. The server never
 * hears of allocations and frees in graphs; they are nodes that do nothing.
 */
#include "cleanup.h"
#include "client_capture.h"
#include "client_event.h"
#include "client_graph.h"
#include "client_memory.h"
#include "client_pool.h"
#include "graph_memory.h"

/* The lock is held, so frees that are still to come are not waited for. */
CUresult graph_memory_take(CUcontext given, struct graph_memory *memory)
{
    struct device *device = device_lookup(memory->device);
    struct allocation like = {.size = memory->size}, allocation;
    struct context *context;
    enum place place;
    CUresult result = device ? context_resolve(given, &context) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    if (memory->size > device->record->total_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    like.context = context->device == device ? context : device->primary;
    memory_reclaim(device, false);
    result = memory_take_like(&device->heap, &like, &memory->address);
    if (result == CUDA_SUCCESS && memory_find(memory->address, &allocation, &place))
        memory->id = allocation.id;
    memory->behind = graph_memory_word(FENCE_OF_NOTHING);
    return result;
}

/* The context may have taken it along. */
void graph_memory_give(struct graph_memory *memory)
{
    const struct fence fence = {(uint32_t)(memory->behind >> 32), (uint32_t)memory->behind};
    struct allocation allocation;
    enum place place;

    if (memory_find(memory->address, &allocation, &place) && allocation.id == memory->id)
        pool_give(&allocation, fence);
}

bool graph_device_exists(CUdevice device)
{
    return device_lookup(device) != NULL;
}

uint64_t graph_memory_word(struct fence fence)
{
    return (uint64_t)fence.word << 32 | fence.seq;
}

void graph_memory_launched(const struct graph_exec *exec)
{
    const struct exec_plan *plan = exec->owner;
    uint64_t behind = graph_memory_word(event_fence(plan->behind));

    for (unsigned i = 0; i < exec->count; i++) {
        struct graph_memory *memory = graph_exec_memory(exec, i);

        if (memory)
            memory->behind = behind;
    }
    graph_memory_launched_locked(exec);
}

bool graph_memory_takes_free(CUdeviceptr address, struct stream *stream, CUresult *ret_result)
{
    struct fence fence;

    if (!graph_memory_exists())
        return false;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client_graph_lock);
    struct graph_memory *memory = graph_memory_find_locked(address);

    if (!memory)
        return false;
    *ret_result = graph_memory_check_free_locked(memory);
    if (*ret_result == CUDA_SUCCESS && stream)
        *ret_result = stream_fence(stream, &fence);
    if (*ret_result != CUDA_SUCCESS)
        return true;
    memory->behind = graph_memory_word(stream ? fence : FENCE_OF_NOTHING);
    graph_memory_freed_locked(memory);
    return true;
}
