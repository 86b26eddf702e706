/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams as objects: which one a handle means, how they come and go.
 */
#include "soft_stream.h"

#include <stdlib.h>

#include "soft_context.h"
#include "soft_green.h"
#include "soft_part.h"
#include "soft_printf.h"

/* A thread's own default streams, one for each context that it has used one in. */
#define OWN_STREAMS 32

static __thread uint64_t own_streams[OWN_STREAMS];
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static unsigned long long last_id;

unsigned stream_sms_for_cluster(const struct stream *stream, unsigned cluster_size)
{
    return stream->confined ? sm_set_count_for_cluster(&stream->part, cluster_size)
                            : stream->context->device->sm_count;
}

struct stream *stream_create_locked(struct context *context, unsigned flags, int priority)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->handle = soft_add(SOFT_STREAM, stream);
    if (!stream->handle) {
        free(stream);
        return NULL;
    }
    stream->id = ++last_id;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->capture.context = (CUcontext)(uintptr_t)context->handle;
    stream->capture.is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
    list_append(&context->streams, &stream->in_context);
    return stream;
}

void stream_reap_locked(struct stream *stream)
{
    if (!stream->destroyed || stream->first)
        return;
    list_remove(&stream->in_context);
    free(stream);
}

void stream_destroy_locked(struct stream *stream)
{
    capture_stream_gone_locked(&stream->capture);
    if (!stream->destroyed)
        handles_remove(&soft_handles, SOFT_STREAM, stream->handle);
    stream->destroyed = true;
    stream_reap_locked(stream);
}

static void own_streams_end(void *unused)
{
    SOFT_LOCKED;

    for (unsigned i = 0; i < OWN_STREAMS; i++) {
        struct stream *stream = soft_get(SOFT_STREAM, (void *)own_streams[i]);

        if (stream)
            stream_destroy_locked(stream);
        own_streams[i] = 0;
    }
}

static void own_key_create(void)
{
    pthread_key_create(&own_key, own_streams_end);
}

static CUresult own_stream_locked(struct context *context, struct stream **ret_stream)
{
    unsigned place = OWN_STREAMS;

    for (unsigned i = 0; i < OWN_STREAMS; i++) {
        struct stream *stream = soft_get(SOFT_STREAM, (void *)own_streams[i]);

        if (stream && stream->context == context) {
            *ret_stream = stream;
            return CUDA_SUCCESS;
        }
        if (!stream && place == OWN_STREAMS)
            place = i;
    }
    if (place == OWN_STREAMS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_stream = stream_create_locked(context, CU_STREAM_DEFAULT, SOFT_LEAST_PRIORITY);
    if (!*ret_stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_once(&own_once, own_key_create);
    pthread_setspecific(own_key, own_streams);
    own_streams[place] = (*ret_stream)->handle;
    return CUDA_SUCCESS;
}

static CUresult default_stream_locked(CUstream which, struct stream **ret_stream)
{
    struct green *green = green_current_locked();
    struct context *context;
    CUresult result = context_current_locked(&context);

    if (result)
        return result;
    if (which == CU_STREAM_PER_THREAD)
        return green ? CUDA_ERROR_INVALID_HANDLE : own_stream_locked(context, ret_stream);
    *ret_stream = green ? green_default_locked(green) : context->legacy;
    return *ret_stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult stream_find_locked(CUstream handle, struct stream **ret_stream)
{
    struct stream *stream;

    if (!handle)
        handle = soft_default_stream();
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return default_stream_locked(handle, ret_stream);
    stream = soft_get(SOFT_STREAM, handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->detached)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

CUresult stream_work_locked(CUstream handle, struct stream **ret_stream)
{
    struct stream *stream;
    CUresult result = stream_find_locked(handle, &stream);

    if (result)
        return result;
    if (stream->context->error)
        return stream->context->error;
    if (stream->capture.is_legacy)
        result = capture_legacy_locked(stream->capture.context);
    if (!result)
        *ret_stream = stream;
    return result;
}

CUresult stream_use_locked(CUstream handle, struct stream **ret_stream)
{
    struct stream *stream;
    CUresult result = stream_work_locked(handle, &stream);

    if (!result)
        result = capture_refuse_locked(&stream->capture);
    if (!result)
        *ret_stream = stream;
    return result;
}

CUresult stream_synchronize_locked(struct stream *stream)
{
    struct context *context = stream->context;

    if (stream == green_legacy_locked(stream))
        return context_join_locked(context, stream->green, CU_STREAM_NON_BLOCKING);
    if (stream->last)
        operation_wait_finished_locked(stream->last);
    parts_synchronized_locked(context->device);
    print_flush_locked(context->printer);
    return context->error;
}
