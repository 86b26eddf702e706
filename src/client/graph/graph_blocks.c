/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of graphs in the client: blocks of the device's heap, as those of pools. Allocations and
 * frees in graphs are nodes that do nothing, and are not sent to the server.
 */
#include "graph_blocks.h"

#include "cleanup.h"
#include "client_capture.h"
#include "client_context.h"
#include "client_event.h"
#include "client_memory.h"
#include "exec_plan.h"
#include "graph_memory.h"
#include "pool_pending.h"

/* The lock is held, so frees that are still to come are not waited for. */
CUresult graph_memory_take(CUcontext given, struct graph_memory *memory)
{
    struct device *device = device_lookup(memory->device);
    struct allocation like = {.size = memory->size, .kind = &kind_graph}, allocation;
    struct context *context;
    CUresult result = device ? context_resolve(given, &context) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    if (memory->size > device->record->total_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    like.context = context->device == device ? context : device->primary;
    memory_free_pending(memory_device_heap(device), false);
    result = memory_take_like(memory_device_heap(device), &like, &memory->address);
    if (result == CUDA_SUCCESS && address_map_find(memory->address, &allocation))
        memory->id = allocation.id;
    memory->behind = fence_pack(FENCE_OF_NOTHING);
    return result;
}

/* The block may have been freed with its context. */
void graph_memory_give(struct graph_memory *memory)
{
    const struct fence fence = fence_unpack(memory->behind);
    struct allocation allocation;

    if (address_map_find(memory->address, &allocation) && allocation.id == memory->id)
        pool_give(&allocation, fence);
}

bool graph_device_exists(CUdevice device)
{
    return device_lookup(device) != NULL;
}

void graph_memory_launched(const struct graph_exec *exec)
{
    const struct exec_plan *plan = exec->owner;
    uint64_t behind = fence_pack(event_fence(plan->behind));

    for (unsigned i = 0; i < exec->count; i++) {
        struct graph_memory *memory = graph_exec_memory(exec, i);

        if (memory)
            memory->behind = behind;
    }
    graph_memory_launched_locked(exec);
}
