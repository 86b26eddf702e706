/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_wait.h. */
#include "stream_wait.h"

#include <stdatomic.h>

#include "cleanup.h"
#include "client_printf.h"
#include "managed_hooks.h"
#include "recovery_hook.h"
#include "stream_commands.h"
#include "stream_group.h"

static enum fence_wait_mode wait_mode_of(const struct context *context)
{
    return context->flags & CU_CTX_SCHED_BLOCKING_SYNC ? FENCE_SLEEP : FENCE_SPIN;
}

/* The thread writes the kernels' output before it reports their error. */
static CUresult end_waiting(CUresult result)
{
    printf_output_collect();
    managed_pull();
    return result != CUDA_SUCCESS ? result : client_asked_error();
}

static _Atomic uint64_t waits;

/* Called by threads of the program whenever they have waited; read by stream_waits(). Two threads
 * that store the same number have waited at the same time. */
void stream_count_wait(void)
{
    atomic_store_explicit(&waits, atomic_load_explicit(&waits, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* The partner of stream_count_wait(). */
uint64_t stream_waits(void)
{
    return atomic_load_explicit(&waits, memory_order_relaxed);
}

CUresult stream_synchronize(struct stream *stream)
{
    struct fence fence;
    CUresult result;

    managed_prefetch(stream);
    result = stream_fence(stream, &fence);
    if (result == CUDA_SUCCESS)
        result = fence_wait_traced(fence, stream->handle, wait_mode_of(stream->context));
    return end_waiting(result);
}

/* The legacy stream that contexts of the device have in common. */
static struct stream *device_legacy(const struct context *context)
{
    return context->green ? NULL : stream_group_of(context->device)->legacy;
}

/* Sends all fences first, so that the streams finish concurrently. */
static CUresult fence_context_locked(struct context *context)
{
    struct stream *legacy = device_legacy(context);
    CUresult result = CUDA_SUCCESS;
    struct fence fence;

    list_for_each (struct stream, stream, &context->streams, link) {
        if (result == CUDA_SUCCESS)
            result = stream_fence(stream, &fence);
    }
    if (legacy && result == CUDA_SUCCESS)
        result = stream_fence(legacy, &fence);
    return result;
}

static CUresult fence_context(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return fence_context_locked(context);
}

static CUresult fence_device(struct device *device)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct context, context, &client->contexts, link) {
        if (context->device == device && result == CUDA_SUCCESS)
            result = fence_context_locked(context);
    }
    return result;
}

/* The fence is that of the last number that was issued. */
static bool is_busy(const struct stream *stream, struct fence *ret_fence)
{
    *ret_fence = stream_fence_at(stream, fence_issued(stream->word));
    return !fence_passed(*ret_fence);
}

/* One stream after the other, each looked up again: any of them may be destroyed meanwhile. */
static uint64_t next_busy_stream(struct context *context, struct fence *ret_fence)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct stream *legacy = device_legacy(context);

    list_for_each (struct stream, stream, &context->streams, link) {
        if (is_busy(stream, ret_fence))
            return stream->handle;
    }
    return legacy && is_busy(legacy, ret_fence) ? legacy->handle : 0;
}

/* A green context of a device with work, or NULL. They are not freed. */
static struct context *next_busy_green(const struct device *device)
{
    struct fence fence;

    list_for_each (struct context, context, &client->contexts, link) {
        if (!context->green || context->device != device)
            continue;
        list_for_each (struct stream, stream, &context->streams, link) {
            if (is_busy(stream, &fence))
                return context;
        }
    }
    return NULL;
}

static CUresult wait_for_greens(struct context *primary)
{
    CUresult result = fence_device(primary->device);

    while (result == CUDA_SUCCESS) {
        struct fence fence;

        pthread_mutex_lock(&client->lock);
        struct context *green = next_busy_green(primary->device);
        pthread_mutex_unlock(&client->lock);
        uint64_t busy = green ? next_busy_stream(green, &fence) : 0;
        if (!green)
            break;
        if (busy)
            result = fence_wait_traced(fence, busy, wait_mode_of(primary));
    }
    return result;
}

/* A primary context waits for its green ones, too. */
CUresult stream_synchronize_context(struct context *context)
{
    struct fence fence;
    CUresult result;
    uint64_t busy;

    managed_prefetch(NULL);
    result = fence_context(context);
    if (result == CUDA_SUCCESS && context_has_greens(context))
        result = wait_for_greens(context);
    while (result == CUDA_SUCCESS && (busy = next_busy_stream(context, &fence)) != 0)
        result = fence_wait_traced(fence, busy, wait_mode_of(context));
    if (result == CUDA_SUCCESS)
        result = fence_wait_orphans(context->id);
    return end_waiting(result);
}

CUresult stream_drain_device(struct device *device)
{
    CUresult result = fence_device(device);

    return result != CUDA_SUCCESS ? result : fence_wait_device(device->ordinal);
}

CUresult stream_drain_all(void)
{
    CUresult result = recovery_client_error();

    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++)
        result = stream_drain_device(&client->devices[i]);
    return result;
}
