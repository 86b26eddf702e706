/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's stream is destroyed at once where an event can stand for it. It may be one of a
 * green context that ends before the work does.
 */
#include "ended_streams.h"

#include "cleanup.h"
#include "driver_stream.h"
#include "loader.h"
#include "refused_objects.h"
#include "stream_state.h"

static bool has_work(const struct stream *stream)
{
    CUresult result =
        stream->driver ? driver.cuStreamQuery(stream->driver) : driver.cuEventQuery(stream->order);

    return result == CUDA_ERROR_NOT_READY;
}

static void forget(struct stream *stream)
{
    object_uncharge(stream->session, QUOTA_STREAMS, stream->uncharged);
    stream_unlist(stream);
    stream_destroy(stream);
}

/* At no moment is the stream in neither list. Partner: print_checkpoints_are_reached(). */
static void enlist_under_lock(struct stream *stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    list_remove(&stream->link);
    list_append(&stream->session->streams->ended, &stream->link);
}

void ended_streams_take(struct stream *stream)
{
    enlist_under_lock(stream);
    stream_close(stream);
    if (!stream->driver || !has_work(stream))
        forget(stream);
    else if (stream_order_record(stream) == CUDA_SUCCESS)
        driver_stream_drop(stream);
}

bool ended_streams_are_idle(struct session *session)
{
    list_for_each_safe (struct stream, stream, &session->streams->ended, link) {
        if (session_visit(session, stream->device) == CUDA_SUCCESS && !has_work(stream))
            forget(stream);
    }
    return list_empty(&session->streams->ended);
}

void ended_streams_forget_all(struct session *session)
{
    list_for_each_safe (struct stream, stream, &session->streams->ended, link) {
        session_visit(session, stream->device);
        forget(stream);
    }
}
