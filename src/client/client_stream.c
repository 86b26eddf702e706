/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams. A handle is minted here and the server is told of it in passing, so making a stream
 * waits for nobody. Commands carry no fence of their own unless somebody needs one: a fence is
 * sent when a thread comes to wait, and covers all that went before.
 */
#include <stdlib.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_managed.h"
#include "client_printf.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_thread.h"
#include "wire_calls.h"

CUresult stream_replay(const struct stream *stream)
{
    struct wire_cuStreamCreateWithPriority in = {
        .hStream = stream->handle,
        .device = stream->device->index,
        .flags = stream->flags,
        .priority = stream->priority,
        .word = stream->word,
        .share = stream->context->share,
    };

    if (stream->kind == STREAM_LEGACY)
        in.flags |= WIRE_STREAM_LEGACY;
    return wire_cuStreamCreateWithPriority(&client->channel, &in);
}

static void send_create(const struct stream *stream)
{
    channel_lock(&client->channel);
    if (stream->kind == STREAM_BLOCKING)
        stream->device->blocking_streams++;
    if (stream->kind == STREAM_NONBLOCKING)
        stream->device->nonblocking_streams++;
    stream_replay(stream);
    channel_unlock(&client->channel);
}

static struct stream *stream_create(struct context *context, enum stream_kind kind, int priority)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->context = context;
    stream->device = context->device;
    stream->kind = kind;
    stream->flags = kind == STREAM_NONBLOCKING ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    stream->priority = priority;
    stream->capture.is_legacy = kind == STREAM_LEGACY;
    stream->capture.is_blocking = kind == STREAM_BLOCKING;
    stream->capture.context = context->handle;
    stream->id = client_next_id();
    stream->word = fence_word_take(context->device->ordinal);
    list_init(&stream->link);
    if (stream->word != FENCE_NONE) {
        stream->host_wait_seq = client->host_wait_words[stream->word];
        stream->handle = handles_add(&client->handles, WIRE_STREAM, stream);
    }
    if (!stream->handle) {
        if (stream->word != FENCE_NONE)
            fence_word_give(stream->word);
        free(stream);
        return NULL;
    }
    send_create(stream);
    return stream;
}

struct stream *stream_create_own(struct context *context)
{
    return stream_create(context, STREAM_NONBLOCKING, 0);
}

/* Contexts have the device's in common, but for those with a share of their own; theirs ends with
 * them. */
static struct stream *legacy_stream(struct context *context)
{
    struct stream **legacy = context->share ? &context->legacy : &context->device->legacy;
    struct stream *stream = __atomic_load_n(legacy, __ATOMIC_ACQUIRE);

    if (stream)
        return stream;
    pthread_mutex_lock(&client->lock);
    if (!*legacy) {
        stream =
            stream_create(context->share ? context : context->device->primary, STREAM_LEGACY, 0);
        if (stream && context->share)
            list_append(&context->streams, &stream->link);
        __atomic_store_n(legacy, stream, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&client->lock);
    return *legacy;
}

static void remember(struct context *context, struct stream *stream)
{
    pthread_mutex_lock(&client->lock);
    list_append(&context->streams, &stream->link);
    pthread_mutex_unlock(&client->lock);
}

static struct thread_stream *thread_stream_slot(struct thread *thread, struct context *context)
{
    struct thread_stream *streams;

    for (unsigned i = 0; i < thread->stream_count; i++)
        if (thread->streams[i].context == context)
            return &thread->streams[i];
    thread_keep();
    streams = realloc(thread->streams, (thread->stream_count + 1) * sizeof(*streams));
    if (!streams)
        return NULL;
    thread->streams = streams;
    streams[thread->stream_count] = (struct thread_stream){.context = context};
    return &streams[thread->stream_count++];
}

/* An ordinary blocking stream that the calling thread has to itself. */
static struct stream *per_thread_stream(struct context *context)
{
    struct thread_stream *slot = thread_stream_slot(thread_self(), context);
    struct stream *stream;

    if (!slot)
        return NULL;
    if (slot->stream && slot->epoch == context->epoch) {
        stream = handles_get(&client->handles, WIRE_STREAM, (uint64_t)slot->stream);
        if (stream)
            return stream;
    }
    stream = stream_create(context, STREAM_BLOCKING, 0);
    if (!stream)
        return NULL;
    remember(context, stream);
    slot->stream = (CUstream)stream->handle;
    slot->epoch = context->epoch;
    return stream;
}

CUresult stream_resolve(struct context *context, CUstream handle, struct stream **ret_stream)
{
    struct stream *stream;

    if (!handle)
        handle = thread_self()->default_stream;
    if (!handle || handle == CU_STREAM_LEGACY)
        stream = legacy_stream(context);
    else if (handle == CU_STREAM_PER_THREAD)
        stream = per_thread_stream(context);
    else if (!(stream = handles_get(&client->handles, WIRE_STREAM, (uint64_t)handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

CUresult stream_enter(CUstream handle, struct stream **ret_stream)
{
    struct context *context;
    CUresult result = context_enter(&context);

    return result != CUDA_SUCCESS ? result : stream_resolve(context, handle, ret_stream);
}

CUresult stream_enter_uncaptured(CUstream handle, struct stream **ret_stream)
{
    CUresult result = stream_enter(handle, ret_stream);

    return result != CUDA_SUCCESS ? result : capture_check_stream(*ret_stream);
}

/* ---- commands ---- */

static void count_work(struct stream *stream)
{
    if (stream->kind == STREAM_BLOCKING)
        stream->last_work = ++stream->device->blocking_work;
}

/* Whether all that was put on the stream is known to be done. */
static bool is_idle(const struct stream *stream)
{
    return !stream->unfenced && fence_passed(stream_fence_at(stream, fence_issued(stream->word)));
}

/* A fence of the legacy stream stands for those of blocking ones, such as this. */
static bool legacy_covers(const struct stream *stream)
{
    const struct stream *legacy = stream->device->legacy;

    return !stream->context->share && legacy && stream->last_work <= legacy->work_covered &&
           fence_passed(stream_fence_at(legacy, fence_issued(legacy->word))) &&
           fence_passed(stream_fence_at(stream, fence_issued(stream->word)));
}

static bool is_done(const struct stream *stream)
{
    return is_idle(stream) || (stream->kind == STREAM_BLOCKING && legacy_covers(stream));
}

/* From here on the stream is busy. */
static void mark_first_work(struct stream *stream)
{
    if (is_done(stream))
        stream->first_work = client->channel.sent;
}

bool stream_lost_work(const struct stream *stream, uint64_t read)
{
    return !is_done(stream) && stream->first_work < read;
}

static bool context_is_idle(const struct context *context)
{
    const struct stream *legacy = context->device->legacy;

    list_for_each(const struct stream, stream, &context->streams, link)
    {
        if (!is_done(stream))
            return false;
    }
    return !legacy || is_idle(legacy);
}

bool stream_all_idle_locked(void)
{
    list_for_each(const struct context, context, &client->contexts, link)
    {
        if (!context_is_idle(context))
            return false;
    }
    return fence_orphans_passed();
}

void stream_begin(struct stream *stream)
{
    channel_lock(&client->channel);
    managed_push(stream);
    mark_first_work(stream);
    stream->unfenced = true;
    count_work(stream);
}

uint32_t stream_begin_fenced(struct stream *stream)
{
    channel_lock(&client->channel);
    managed_push(stream);
    mark_first_work(stream);
    stream->unfenced = false;
    stream->work_covered = stream->device->blocking_work;
    count_work(stream);
    return fence_issue(stream->word);
}

void stream_end(void)
{
    channel_unlock(&client->channel);
}

/* Work on the legacy stream is behind that of all blocking streams, and so is a fence on it. */
static bool needs_fence(const struct stream *stream)
{
    return stream->unfenced ||
           (stream->kind == STREAM_LEGACY && stream->work_covered != stream->device->blocking_work);
}

/* Not a stream command in the sense of count_work(): a fence is no work to be waited for. */
static CUresult fence_locked(struct stream *stream)
{
    struct wire_fnFence in = {.hStream = stream->handle};

    mark_first_work(stream);
    in.seq = fence_issue(stream->word);
    stream->unfenced = false;
    stream->work_covered = stream->device->blocking_work;
    return wire_fnFence(&client->channel, &in);
}

CUresult stream_fence(struct stream *stream, struct fence *ret_fence)
{
    CUresult result = CUDA_SUCCESS;

    channel_lock(&client->channel);
    if (needs_fence(stream))
        result = fence_locked(stream);
    *ret_fence = stream_fence_at(stream, fence_issued(stream->word));
    channel_unlock(&client->channel);
    return result;
}

static enum fence_wait_mode wait_mode_of(const struct context *context)
{
    return context->flags & CU_CTX_SCHED_BLOCKING_SYNC ? FENCE_SLEEP : FENCE_SPIN;
}

/* Text that came before an error comes out before it is reported. */
static CUresult end_waiting(CUresult result)
{
    printf_output_write();
    managed_pull();
    return result != CUDA_SUCCESS ? result : client_asked_error();
}

CUresult stream_synchronize(struct stream *stream)
{
    struct fence fence;
    CUresult result = stream_fence(stream, &fence);

    if (result == CUDA_SUCCESS)
        result = fence_wait(fence, stream->handle, wait_mode_of(stream->context));
    return end_waiting(result);
}

/* All fences first, so that the streams finish side by side. */
static CUresult fence_context_locked(struct context *context)
{
    struct stream *legacy = context->device->legacy;
    CUresult result = CUDA_SUCCESS;
    struct fence fence;

    list_for_each(struct stream, stream, &context->streams, link)
    {
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

    list_for_each(struct context, context, &client->contexts, link)
    {
        if (context->device == device && result == CUDA_SUCCESS)
            result = fence_context_locked(context);
    }
    return result;
}

/* One stream after the other, each looked up again: any of them may be destroyed meanwhile. */
static uint64_t next_busy_stream(struct context *context, struct fence *ret_fence)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct stream *legacy = context->device->legacy;

    list_for_each(struct stream, stream, &context->streams, link)
    {
        *ret_fence = stream_fence_at(stream, fence_issued(stream->word));
        if (!fence_passed(*ret_fence))
            return stream->handle;
    }
    if (!legacy)
        return 0;
    *ret_fence = stream_fence_at(legacy, fence_issued(legacy->word));
    return fence_passed(*ret_fence) ? 0 : legacy->handle;
}

CUresult stream_synchronize_context(struct context *context)
{
    CUresult result = fence_context(context);
    struct fence fence;
    uint64_t busy;

    while (result == CUDA_SUCCESS && (busy = next_busy_stream(context, &fence)) != 0)
        result = fence_wait(fence, busy, wait_mode_of(context));
    return end_waiting(result);
}

CUresult stream_drain_device(struct device *device)
{
    CUresult result = fence_device(device);

    return result != CUDA_SUCCESS ? result : fence_wait_device(device->ordinal);
}

/* ---- making and ending ---- */

static int clamp_priority(const struct device *device, int priority)
{
    if (priority > device->record->priority_least)
        return device->record->priority_least;
    if (priority < device->record->priority_greatest)
        return device->record->priority_greatest;
    return priority;
}

CUresult client_cuStreamCreateWithPriority(CUstream *phStream, unsigned flags, int priority)
{
    struct context *context;
    struct stream *stream;
    CUresult result = context_enter(&context);

    if (!phStream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    stream = stream_create(context, flags ? STREAM_NONBLOCKING : STREAM_BLOCKING,
                           clamp_priority(context->device, priority));
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    remember(context, stream);
    *phStream = (CUstream)stream->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuStreamCreate(CUstream *phStream, unsigned Flags)
{
    return client_cuStreamCreateWithPriority(phStream, Flags, 0);
}

/* A last fence, so that whoever waits for the device later knows of this stream's work. */
static void send_destroy(struct stream *stream)
{
    struct wire_cuStreamDestroy_v2 in = {.hStream = stream->handle};

    channel_lock(&client->channel);
    if (stream->unfenced)
        fence_locked(stream);
    if (stream->kind == STREAM_BLOCKING)
        stream->device->blocking_streams--;
    if (stream->kind == STREAM_NONBLOCKING)
        stream->device->nonblocking_streams--;
    wire_cuStreamDestroy_v2(&client->channel, &in);
    channel_unlock(&client->channel);
}

static void stream_destroy(struct stream *stream)
{
    capture_forget_stream(stream);
    send_destroy(stream);
    fence_word_give(stream->word);
    free(stream);
}

void stream_destroy_handle(CUstream handle)
{
    struct stream *stream;

    pthread_mutex_lock(&client->lock);
    stream = handles_remove(&client->handles, WIRE_STREAM, (uint64_t)handle);
    if (stream)
        list_remove(&stream->link);
    pthread_mutex_unlock(&client->lock);
    if (stream)
        stream_destroy(stream);
}

static CUstream any_stream(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct stream *stream = list_first(&context->streams, struct stream, link);

    return stream ? (CUstream)stream->handle : NULL;
}

void stream_destroy_all(struct context *context)
{
    CUstream handle;

    while ((handle = any_stream(context)) != NULL)
        stream_destroy_handle(handle);
}

CUresult client_cuStreamDestroy_v2(CUstream hStream)
{
    struct stream *stream = handles_get(&client->handles, WIRE_STREAM, (uint64_t)hStream);

    if (!stream || stream->kind == STREAM_LEGACY)
        return CUDA_ERROR_INVALID_HANDLE;
    stream_destroy_handle(hStream);
    return client_error();
}

/* ---- waiting ---- */

CUresult client_cuStreamSynchronize(CUstream hStream)
{
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    return result != CUDA_SUCCESS ? result : stream_synchronize(stream);
}

CUresult client_cuStreamQuery(CUstream hStream)
{
    struct fence fence;
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    if (result == CUDA_SUCCESS)
        result = stream_fence(stream, &fence);
    if (result != CUDA_SUCCESS)
        return result;
    printf_output_take();
    if (!fence_passed(fence))
        return CUDA_ERROR_NOT_READY;
    managed_pull();
    return client_asked_error();
}

CUresult client_cuCtxSynchronize(void)
{
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    return result != CUDA_SUCCESS ? result : stream_synchronize_context(context);
}

CUresult client_cuCtxSynchronize_v2(CUcontext ctx)
{
    struct context *context;
    CUresult result = client_error();

    if (result == CUDA_SUCCESS)
        result = context_resolve(ctx, &context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    return result != CUDA_SUCCESS ? result : stream_synchronize_context(context);
}
