/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a context: made, made active, failed, synchronized with, emptied.
 */
#include "soft_context.h"

#include <stdlib.h>
#include <string.h>

#include "schedule.h"
#include "soft_green.h"
#include "soft_part.h"
#include "soft_printf.h"
#include "soft_stream.h"

static struct list contexts = {&contexts, &contexts};
static unsigned long long last_id;

void context_free(struct context *context)
{
    printer_destroy(context->printer);
    free(context);
}

unsigned long long context_new_id_locked(void)
{
    return ++last_id;
}

static struct context *context_new_locked(struct device *device, unsigned flags)
{
    struct context *context = calloc(1, sizeof(*context));

    if (!context)
        return NULL;
    context->device = device;
    context->flags = flags;
    context->id = context_new_id_locked();
    context->api_version = 3020;
    list_init(&context->streams);
    list_init(&context->events);
    list_init(&context->memory);
    list_init(&context->modules);
    list_init(&context->arrays);
    list_init(&context->textures);
    list_init(&context->in_all);
    context->printer = printer_create();
    context->handle = context->printer ? soft_add(SOFT_CONTEXT, context) : 0;
    if (!context->handle) {
        context_free(context);
        return NULL;
    }
    return context;
}

struct context *context_create_primary_locked(struct device *device)
{
    struct context *context = context_new_locked(device, 0);

    if (context)
        context->is_primary = true;
    return context;
}

/* A context's part of its device's memory: the printf buffer, and the heap of the kernels'
 * malloc. */
static bool takes_memory(CUlimit limit)
{
    return limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE;
}

void context_note_use_locked(struct context *context, const struct sg_kernel_info *kernel)
{
    context->limits_used |= (uint32_t)kernel->prints << CU_LIMIT_PRINTF_FIFO_SIZE |
                            (uint32_t)kernel->allocates << CU_LIMIT_MALLOC_HEAP_SIZE;
}

CUresult context_set_limit_locked(struct context *context, CUlimit limit, size_t value)
{
    size_t now = context->limits[limit];

    if (context->limits_used >> limit & 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (takes_memory(limit) && value > now && !device_charge_locked(context->device, value - now))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (takes_memory(limit) && value < now)
        device_refund_locked(context->device, now - value);
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        sg_space_set_heap_limit(context->space, value);
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

static void refund_limits_locked(struct context *context)
{
    for (unsigned i = 0; i < CU_LIMIT_MAX; i++) {
        if (takes_memory(i))
            device_refund_locked(context->device, context->limits[i]);
        context->limits[i] = 0;
    }
}

static CUresult set_defaults_locked(struct context *context)
{
    static const size_t limits[CU_LIMIT_MAX] = {
        [CU_LIMIT_STACK_SIZE] = 1024,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    };

    CUresult result = CUDA_SUCCESS;

    context->limits_used = 0;
    for (unsigned i = 0; i < CU_LIMIT_MAX && !result; i++)
        result = context_set_limit_locked(context, i, limits[i]);
    context->cache = CU_FUNC_CACHE_PREFER_NONE;
    context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return result;
}

static void release_space_locked(struct context *context)
{
    refund_limits_locked(context);
    sg_space_destroy(context->space);
    context->space = NULL;
}

CUresult context_activate_locked(struct context *context)
{
    if (context->active)
        return CUDA_SUCCESS;
    if (context->device->lost)
        return context->device->lost;
    if (!device_engine_locked(context->device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->space = sg_space_create();
    if (!context->space)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (set_defaults_locked(context) == CUDA_SUCCESS)
        context->legacy = stream_create_locked(context, CU_STREAM_DEFAULT, SOFT_LEAST_PRIORITY);
    if (!context->legacy) {
        release_space_locked(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->legacy->capture.is_legacy = true;
    context->error = CUDA_SUCCESS;
    context->active = true;
    list_append(&contexts, &context->in_all);
    parts_context_begins_locked(context);
    return CUDA_SUCCESS;
}

CUresult context_create_locked(struct device *device, unsigned flags, struct context **ret_context)
{
    struct context *context = context_new_locked(device, flags);
    CUresult result;

    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = context_activate_locked(context);
    if (result) {
        handles_remove(&soft_handles, SOFT_CONTEXT, context->handle);
        context_free(context);
        return result;
    }
    *ret_context = context;
    return CUDA_SUCCESS;
}

static void empty_locked(struct context *context)
{
    parts_context_ends_locked(context);
    parts_release_locked(context->device);
    list_for_each_safe (struct stream, stream, &context->streams, in_context)
        stream_destroy_locked(stream);
    context->legacy = NULL;
    release_space_locked(context);
}

void contexts_forget_owner_locked(uint64_t owner)
{
    list_for_each (struct context, context, &contexts, in_all)
        sg_space_forget_owner(context->space, owner);
}

/* Removes the context from those that have it as a peer, because its memory is gone. */
static void part_from_peers_locked(struct context *context)
{
    list_for_each (struct context, other, &contexts, in_all)
        context_forget_peer_locked(other, context);
    memset(context->peers, 0, sizeof(context->peers));
}

void context_deactivate_locked(struct context *context)
{
    if (!context->active)
        return;
    context_synchronize_locked(context);
    if (!context->active)
        return;
    context->active = false;
    context->retains = 0;
    list_remove(&context->in_all);
    empty_locked(context);
    part_from_peers_locked(context);
}

/* A green context is the primary one for all but streams. */
struct context *context_get(CUcontext handle)
{
    struct context *context = soft_get(SOFT_CONTEXT, handle);
    struct green *green = context ? NULL : green_of_context_locked(handle);

    return green ? green->device->primary : context;
}

CUresult context_find_locked(CUcontext handle, struct context **ret_context)
{
    struct context *context;

    if (!handle)
        return context_current_locked(ret_context);
    context = context_get(handle);
    if (!context || !context->active)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult context_use_locked(struct context **ret_context)
{
    struct context *context;
    CUresult result = context_current_locked(&context);

    if (result)
        return result;
    if (context->error)
        return context->error;
    *ret_context = context;
    return CUDA_SUCCESS;
}

/* The process has lost the device with it, as on hardware: only a new process can go on. */
void context_fail_locked(struct context *context, CUresult error, const char *message)
{
    if (context->error)
        return;
    context->error = error;
    context->device->lost = error;
    soft_log("context %llu failed with error %d: %s", context->id, error, message);
}

static const struct operation_type join_type = {0};

/* Waits for an operation that other operations hold up, and shows what was printed. */
static CUresult join_locked(struct context *context, struct operation *join)
{
    schedule_begin_locked(context, join);
    operation_wait_finished_locked(join);
    operation_unref_locked(join);
    parts_synchronized_locked(context->device);
    print_flush_locked(context->printer);
    return context->error;
}

CUresult context_join_locked(struct context *context, const struct green *green,
                             unsigned flags_left_out)
{
    struct operation *join = operation_create(sizeof(*join), &join_type);

    if (!join)
        return CUDA_ERROR_OUT_OF_MEMORY;
    list_for_each (struct stream, stream, &context->streams, in_context) {
        if (stream->green == green && !(stream->flags & flags_left_out))
            operation_depend_locked(join, stream->last);
    }
    return join_locked(context, join);
}

/* Streams of its green contexts are among them. */
CUresult context_synchronize_locked(struct context *context)
{
    struct operation *join = operation_create(sizeof(*join), &join_type);

    if (!join)
        return CUDA_ERROR_OUT_OF_MEMORY;
    list_for_each (struct stream, stream, &context->streams, in_context)
        operation_depend_locked(join, stream->last);
    return join_locked(context, join);
}

static bool sees(struct context *context, const struct context *owner)
{
    return !owner || context == owner || context_reaches(context, owner);
}

void contexts_publish_locked(struct context *owner, uint64_t address, uint64_t size,
                             unsigned access)
{
    list_for_each (struct context, context, &contexts, in_all) {
        if (sees(context, owner))
            sg_space_add(context->space, address, size, access);
    }
}

void contexts_retract_locked(struct context *owner, uint64_t address)
{
    list_for_each (struct context, context, &contexts, in_all) {
        if (sees(context, owner))
            sg_space_remove(context->space, address);
    }
}

/* The slot of a peer, or, for NULL, a free slot. */
struct context **context_peer(struct context *context, const struct context *peer)
{
    for (unsigned i = 0; i < SOFT_MAX_DEVICES; i++)
        if (context->peers[i] == peer)
            return &context->peers[i];
    return NULL;
}

bool context_reaches(struct context *context, const struct context *peer)
{
    return context_peer(context, peer) != NULL;
}

void context_forget_peer_locked(struct context *context, const struct context *peer)
{
    struct context **place = context_peer(context, peer);

    if (place)
        *place = NULL;
}
