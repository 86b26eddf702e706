/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of graphs on the software GPU: taken from the context that will use it, and given back
 * behind the last operation that could.
 */
#include "graph_pool.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

struct gift {
    struct operation operation;
    uint64_t address, id;
};

CUresult graph_memory_take_locked(CUcontext given, struct graph_memory *memory)
{
    struct device *device = device_get(memory->device);
    struct context *context;
    struct memory *block;
    CUresult result = device ? context_find_locked(given, &context) : CUDA_ERROR_INVALID_VALUE;

    if (result)
        return result;
    if (context->device != device)
        context = device->primary;
    if (!context->active)
        return CUDA_ERROR_INVALID_CONTEXT;
    result = memory_allocate_locked(context, MEMORY_DEVICE, memory->size, &block);
    if (result)
        return result;
    memory->address = block->address;
    memory->id = block->id;
    return CUDA_SUCCESS;
}

/* The context may have taken it along. */
static bool gift_start_locked(struct operation *operation)
{
    const struct gift *gift = (const struct gift *)operation;
    struct memory *block = memory_find_locked(gift->address);

    if (block && block->address == gift->address && block->id == gift->id)
        memory_free_locked(block);
    return true;
}

static const struct operation_type gift_type = {.start_locked = gift_start_locked, .always = true};

static struct operation *behind_of(const struct graph_memory *memory)
{
    return (struct operation *)(uintptr_t)memory->behind;
}

void graph_memory_give_locked(struct graph_memory *memory)
{
    struct gift *gift = operation_create(sizeof(*gift), &gift_type);

    if (gift) { /* without it the memory goes with its context */
        gift->address = memory->address;
        gift->id = memory->id;
        operation_depend_locked(&gift->operation, behind_of(memory));
        schedule_begin_locked(NULL, &gift->operation);
        operation_unref_locked(&gift->operation);
    }
    graph_memory_behind_locked(memory, NULL);
}

void graph_memory_behind_locked(struct graph_memory *memory, struct operation *operation)
{
    if (operation)
        operation_ref_locked(operation);
    operation_unref_locked(behind_of(memory));
    memory->behind = (uintptr_t)operation;
}

bool graph_device_exists(CUdevice device)
{
    return device_get(device) != NULL;
}

static const struct operation_type mark_type = {0};

CUresult graph_memory_free_async_locked(struct graph_memory *memory, struct stream *stream)
{
    CUresult result = graph_memory_check_free_locked(memory);
    struct operation *mark = result ? NULL : operation_create(sizeof(*mark), &mark_type);

    if (result)
        return result;
    if (!mark)
        return CUDA_ERROR_OUT_OF_MEMORY;
    schedule_enqueue_locked(stream, mark);
    graph_memory_behind_locked(memory, mark);
    operation_unref_locked(mark);
    graph_memory_freed_locked(memory);
    return CUDA_SUCCESS;
}
