/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context that is asked for this gets one more stream, the joiner, which waits for the others by
 * events; see stream_join.h.
 */
#include "stream_join.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_event.h"
#include "client_prototypes.h"
#include "wire_calls.h"

/* The handles of streams, as some may be destroyed meanwhile. */
struct handles_found {
    uint64_t *handles;
    unsigned count, capacity;
};

static bool belongs(const struct context *context, const struct context *asked)
{
    return context == asked ||
           (asked->primary && context->green && context->device == asked->device);
}

static bool note_handle(struct handles_found *found, const struct stream *stream)
{
    if (found->count == found->capacity) {
        unsigned capacity = found->capacity ? 2 * found->capacity : 16;
        uint64_t *handles = realloc(found->handles, capacity * sizeof(*handles));

        if (!handles)
            return false;
        found->handles = handles;
        found->capacity = capacity;
    }
    found->handles[found->count++] = stream->handle;
    return true;
}

static bool find_streams(const struct context *asked, struct handles_found *found)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (struct context, context, &client->contexts, link) {
        if (!belongs(context, asked))
            continue;
        list_for_each (struct stream, stream, &context->streams, link) {
            if (!note_handle(found, stream))
                return false;
        }
    }
    return true;
}

static struct stream *stream_of(uint64_t handle)
{
    return handles_get(&client->handles, WIRE_STREAM, handle);
}

/* Does something with every stream of the context, its default stream first. */
static CUresult with_streams(struct context *context, CUevent event,
                             CUresult (*act)(struct stream *stream, CUevent event,
                                             struct context *context))
{
    struct handles_found found = {0};
    struct stream *legacy, *stream;
    CUresult result = stream_legacy_of(context, &legacy);

    if (result == CUDA_SUCCESS && !context->share)
        result = act(legacy, event, context); /* it is in no list of a context's */
    if (result == CUDA_SUCCESS && !find_streams(context, &found))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < found.count && result == CUDA_SUCCESS; i++) {
        stream = stream_of(found.handles[i]);
        if (stream && found.handles[i] != context->joiner)
            result = act(stream, event, context);
    }
    free(found.handles);
    return result;
}

static CUresult refuse_capture(struct stream *stream, CUevent event, struct context *context)
{
    return stream_captures(stream) ? capture_check_stream(stream) : CUDA_SUCCESS;
}

static CUresult prepare_joiner(struct context *context)
{
    struct stream *joiner = context->joiner ? stream_of(context->joiner) : NULL;

    if (!context->join_event)
        context->join_event = event_create_own(context);
    if (!joiner)
        joiner = stream_create_own(context);
    if (!joiner || !context->join_event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->joiner = joiner->handle;
    return CUDA_SUCCESS;
}

static CUresult join(struct stream *stream, CUevent event, struct context *context)
{
    CUresult result = event_record_on((CUevent)context->join_event, stream);

    if (result == CUDA_SUCCESS)
        result = event_wait_on((CUevent)context->join_event, stream_of(context->joiner));
    return result;
}

static CUresult hold(struct stream *stream, CUevent event, struct context *context)
{
    return event_wait_on(event, stream);
}

/* Captured work belongs to no context's work. */
static CUresult check_event(struct context *context, CUevent event)
{
    CUresult result = event_check(event);

    if (result == CUDA_ERROR_CAPTURED_EVENT)
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result == CUDA_SUCCESS)
        result = with_streams(context, event, refuse_capture);
    return result == CUDA_SUCCESS ? prepare_joiner(context) : result;
}

CUresult stream_record_context(struct context *context, CUevent event)
{
    CUresult result = check_event(context, event);

    if (result == CUDA_SUCCESS)
        result = with_streams(context, event, join);
    return result == CUDA_SUCCESS ? event_record_on(event, stream_of(context->joiner)) : result;
}

CUresult stream_hold_context(struct context *context, CUevent event)
{
    CUresult result = check_event(context, event);

    if (result == CUDA_SUCCESS)
        result = with_streams(context, event, hold);
    if (result == CUDA_SUCCESS)
        result = event_wait_on(event, stream_of(context->joiner));
    if (result == CUDA_SUCCESS)
        context->has_barrier = true;
    return result;
}

void stream_join_later(struct stream *stream)
{
    struct context *context = stream->context;
    struct stream *joiner = stream_of(context->joiner);

    if (joiner && event_record_on((CUevent)context->join_event, joiner) == CUDA_SUCCESS)
        event_wait_on((CUevent)context->join_event, stream);
}

void stream_join_end(struct context *context)
{
    if (context->joiner)
        stream_destroy_handle((CUstream)context->joiner);
    if (context->join_event)
        client_cuEventDestroy_v2((CUevent)context->join_event);
    context->joiner = context->join_event = 0;
    context->has_barrier = false;
}
