/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, finding and ending streams. A handle is minted here and the server learns of it with the
 * next commands, so making a stream waits for nothing.
 */
#include "client_stream.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_thread.h"
#include "map.h"
#include "stream_commands.h"
#include "stream_group.h"
#include "stream_join.h"
#include "wire_calls.h"

static struct stream_group groups[ATTACH_DEVICES_MAX];

struct stream_group *stream_group_of(const struct device *device)
{
    return &groups[device->ordinal];
}

/* Per-thread streams end with their thread. */
static void end_thread_streams(const struct thread *thread)
{
    for (unsigned i = 0; i < thread->stream_count; i++)
        stream_destroy_handle(thread->streams[i].stream);
}

void stream_init(void)
{
    memset(groups, 0, sizeof(groups));
    thread_exit_hook = end_thread_streams;
}

bool stream_has_independent(const struct stream *stream)
{
    return stream->group->nonblocking_streams != 0;
}

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
        stream->group->blocking_streams++;
    if (stream->kind == STREAM_NONBLOCKING)
        stream->group->nonblocking_streams++;
    stream_replay(stream);
    channel_unlock(&client->channel);
}

static struct stream *stream_mint(struct context *context, enum stream_kind kind, int priority)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->context = context;
    stream->device = context->device;
    stream->group = stream_group_of(context->device);
    stream->kind = kind;
    stream->flags = kind == STREAM_NONBLOCKING ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    stream->priority = priority;
    stream->capture.is_legacy = kind == STREAM_LEGACY;
    stream->capture.is_blocking = kind == STREAM_BLOCKING;
    stream->capture.context = context->handle;
    stream->id = client_next_id();
    stream->word = fence_word_take(context->device->ordinal, context->id,
                                   context->green ? context->device->primary->id : context->id);
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
    return stream_mint(context, STREAM_NONBLOCKING, 0);
}

static __attribute__((noinline)) struct stream *make_legacy(struct context *context,
                                                            struct stream *_Atomic *legacy)
{
    struct stream *stream;

    pthread_mutex_lock(&client->lock);
    if (!*legacy) {
        stream = stream_mint(context->share ? context : context->device->primary, STREAM_LEGACY, 0);
        if (stream && context->share)
            list_append(&context->streams, &stream->link);
        atomic_store_explicit(legacy, stream, memory_order_release);
    }
    pthread_mutex_unlock(&client->lock);
    return *legacy;
}

/* The contexts of a device have its legacy stream in common. One with a share of the
 * multiprocessors has its own, which ends with the context. */
static struct stream *legacy_of(struct context *context)
{
    struct stream *_Atomic *legacy =
        context->share ? &context->legacy : &stream_group_of(context->device)->legacy;
    struct stream *stream = atomic_load_explicit(legacy, memory_order_acquire);

    return stream ? stream : make_legacy(context, legacy);
}

static inline struct stream *legacy_stream(struct context *context)
{
    return legacy_of(context_has_greens(context) ? context_of_streams(context) : context);
}

CUresult stream_legacy_of(struct context *context, struct stream **ret_stream)
{
    struct stream *stream = legacy_of(context);

    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

struct stream *stream_create(struct context *context, enum stream_kind kind, int priority)
{
    struct stream *stream = stream_mint(context, kind, priority);

    if (!stream)
        return NULL;
    pthread_mutex_lock(&client->lock);
    list_append(&context->streams, &stream->link);
    pthread_mutex_unlock(&client->lock);
    if (context->has_barrier)
        stream_join_later(stream);
    return stream;
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

/* An ordinary blocking stream that only the calling thread uses. */
static struct stream *per_thread_stream(struct context *context)
{
    struct thread_stream *slot;
    struct stream *stream;

    slot = thread_stream_slot(thread_self(), context);
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
    slot->stream = (CUstream)stream->handle;
    slot->epoch = context->epoch;
    return stream;
}

/* Streams that their green context has left behind are keys. Under client->lock. */
static struct map detached;

CUresult stream_unknown(CUstream handle)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return map_get(&detached, (uint64_t)handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                : CUDA_ERROR_INVALID_HANDLE;
}

/* Green contexts have none. */
static __attribute__((noinline)) CUresult resolve_per_thread(struct context *context,
                                                             struct stream **ret_stream)
{
    if (context_of_streams(context)->green)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_stream = per_thread_stream(context);
    return *ret_stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult stream_resolve(struct context *context, CUstream handle, struct stream **ret_stream)
{
    struct stream *stream;

    if (!handle)
        handle = thread_self()->default_stream;
    if (!handle || handle == CU_STREAM_LEGACY)
        stream = legacy_stream(context);
    else if (handle == CU_STREAM_PER_THREAD)
        return resolve_per_thread(context, ret_stream);
    else if (!(stream = handles_get(&client->handles, WIRE_STREAM, (uint64_t)handle)))
        return stream_unknown(handle);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

CUresult stream_context(CUstream handle, struct context **ret_context)
{
    const struct stream *stream = handles_get(&client->handles, WIRE_STREAM, (uint64_t)handle);

    if (!stream || !context_is_none() || !context_active(stream->context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = stream->context;
    return CUDA_SUCCESS;
}

CUresult stream_enter(CUstream handle, struct stream **ret_stream)
{
    struct context *context;
    CUresult result = stream_enter_context(handle, &context);

    return result != CUDA_SUCCESS ? result : stream_resolve(context, handle, ret_stream);
}

CUresult stream_enter_uncaptured(CUstream handle, struct stream **ret_stream)
{
    CUresult result = stream_enter(handle, ret_stream);

    return result != CUDA_SUCCESS ? result : capture_check_stream(*ret_stream);
}

/* ---- ending ---- */

/* A last fence, so that a thread that waits for the device later waits for this stream's work. */
static void send_destroy(struct stream *stream)
{
    struct wire_cuStreamDestroy_v2 in = {.hStream = stream->handle};

    channel_lock(&client->channel);
    if (stream->unfenced)
        stream_send_fence_locked(stream);
    if (stream->kind == STREAM_BLOCKING)
        stream->group->blocking_streams--;
    if (stream->kind == STREAM_NONBLOCKING)
        stream->group->nonblocking_streams--;
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

/* The handles of the program's are remembered for the error that CUDA gives for them. */
void stream_detach_all(struct context *context)
{
    CUstream handle;

    while ((handle = any_stream(context)) != NULL) {
        pthread_mutex_lock(&client->lock);
        map_put(&detached, (uint64_t)handle, (void *)handle);
        pthread_mutex_unlock(&client->lock);
        stream_destroy_handle(handle);
    }
}
