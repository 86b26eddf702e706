/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: their creation, the frame around the work that they are given, and their end. */
#include "event.h"
#include "stream_state.h"

#include <stdlib.h>

#include "cleanup.h"
#include "driver_stream.h"
#include "ended_streams.h"
#include "fence.h"
#include "lending.h"
#include "refused_objects.h"
#include "server_dispatch.h"
#include "sm_share.h"
#include "window.h"

CUresult stream_end_by(struct stream *stream, uint32_t seq, CUresult result, fence_writer *write)
{
    stream->work++;
    stream->flow.control.left -= result == CUDA_SUCCESS;
    if (!seq)
        return result;
    CUresult fenced = write(stream, seq);
    return result != CUDA_SUCCESS ? result : fenced;
}

CUresult stream_end_work(struct stream *stream, uint32_t seq, CUresult result)
{
    return stream_end_by(stream, seq, result, fence_write);
}

static CUresult stream_check(struct session *session,
                             const struct wire_cuStreamCreateWithPriority *in,
                             const struct device **ret_device)
{
    const struct device *device = session_find_device(session, "cuStreamCreate", in->device);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (in->word >= GPU_REGION_FENCES) {
        session_log_error(session, "cuStreamCreate: fence word %u, there are %u", in->word,
                          GPU_REGION_FENCES);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (in->flags & ~(CU_STREAM_NON_BLOCKING | WIRE_STREAM_LEGACY)) {
        session_log_error(session, "cuStreamCreate: flags %#x are not known", in->flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sm_share_find(session, device, in->share)) {
        session_log_error(session, "cuStreamCreate: there is no SM share %u", in->share);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_device = device;
    return sm_share_barred(session, in->device);
}

static struct stream *stream_create(struct session *session, const struct device *device,
                                    const struct wire_cuStreamCreateWithPriority *in)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->session = session;
    stream->device = device;
    stream->sm_share = sm_share_find(session, device, in->share);
    stream->priority = in->priority;
    stream->word = in->word;
    stream->fence = window_fence(session->window, in->word);
    stream->in_flight = &session->streams->in_flight[in->word];
    stream->legacy = in->flags & WIRE_STREAM_LEGACY;
    stream->blocking = !stream->legacy && !(in->flags & CU_STREAM_NON_BLOCKING);
    list_init(&stream->link);
    stream_flow_init(stream);
    return stream;
}

/* Partner: idle.c. */
static void enlist_under_lock(struct stream *stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    list_append(session_device_streams(stream->session, stream->device), &stream->link);
}

void stream_unlist(struct stream *stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    list_remove(&stream->link);
}

static void stream_enlist(struct stream *stream)
{
    stream->sm_share->streams++;
    stream->sm_share->blocking_streams += stream->blocking;
    enlist_under_lock(stream);
    if (stream->legacy && !stream->sm_share->legacy)
        stream->sm_share->legacy = stream;
    object_charge(stream->session, QUOTA_STREAMS, stream->uncharged);
}

/* The stream that the client goes on with, without the driver's. */
static CUresult add_stream(struct session *session,
                           const struct wire_cuStreamCreateWithPriority *in,
                           const struct device *device, struct stream **ret_stream)
{
    ended_streams_are_idle(session);
    enum object_admission admission = object_admit(session, QUOTA_STREAMS);
    struct stream *stream = admission == OBJECT_DROPPED ? NULL : stream_create(session, device, in);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->uncharged = admission == OBJECT_REFUSED;
    CUresult result = streams_announce_creation(stream)
                          ? CUDA_ERROR_OUT_OF_MEMORY
                          : session_put(session, WIRE_STREAM, in->hStream, stream);
    if (result != CUDA_SUCCESS) {
        streams_announce_end(stream);
        free(stream);
        return result;
    }
    stream_enlist(stream);
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

/* The client goes on as if this had succeeded. So a stream that the driver refuses is kept without
 * the driver's, too: its work fails, and its fences are still written. */
CUresult serve_cuStreamCreateWithPriority(struct session *session,
                                          const struct wire_cuStreamCreateWithPriority *in)
{
    const struct device *device;
    CUresult result = stream_check(session, in, &device);
    if (result != CUDA_SUCCESS)
        return result;

    struct stream *stream;
    result = add_stream(session, in, device, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return stream->uncharged ? CUDA_ERROR_OUT_OF_MEMORY : driver_stream_make(stream);
}

void stream_close(struct stream *stream)
{
    streams_announce_end(stream);
    stream_flow_end(stream);
}

void stream_destroy(struct stream *stream)
{
    if (stream->order)
        driver.cuEventDestroy_v2(stream->order);
    driver_stream_drop(stream);
    free(stream);
}

CUresult serve_cuStreamDestroy_v2(struct session *session, const struct wire_cuStreamDestroy_v2 *in,
                                  struct stream *hStream)
{
    struct sm_share *share = hStream->sm_share;
    CUresult result = session_enter(session, hStream->device);

    if (result == CUDA_SUCCESS)
        result = stream_order_end(hStream);
    if (share->legacy == hStream)
        share->legacy = NULL;
    share->streams--;
    share->blocking_streams -= hStream->blocking;
    session_remove(session, WIRE_STREAM, in->hStream);
    ended_streams_take(hStream);
    ended_streams_are_idle(session);
    return result;
}

bool stream_is_confined(const struct stream *stream)
{
    return stream->sm_share->partition != NULL;
}

/* ---- the end of a session ---- */

static bool device_is_idle(struct session *session, const struct device *device)
{
    list_for_each (struct stream, stream, session_device_streams(session, device), link) {
        if (!stream->driver || session_enter(session, device) != CUDA_SUCCESS)
            continue;
        CUresult result = driver.cuStreamQuery(stream->driver);
        session_check(session, result);
        if (result == CUDA_ERROR_NOT_READY)
            return false;
    }
    return true;
}

bool streams_are_idle(struct session *session)
{
    const struct devices *devices = &session->server->devices;

    for (unsigned i = 0; i < devices->count; i++) {
        if (!device_is_idle(session, session_device(session, i)))
            return false;
    }
    return ended_streams_are_idle(session);
}

static void forget_object(void *context, uint64_t handle, void *object)
{
    struct session *session = context;

    if (handle_type(handle) == WIRE_STREAM) {
        session_remove(session, WIRE_STREAM, handle);
        object_uncharge(session, QUOTA_STREAMS, ((struct stream *)object)->uncharged);
    } else if (handle_type(handle) == WIRE_EVENT) {
        session_remove(session, WIRE_EVENT, handle);
        object_uncharge(session, QUOTA_EVENTS, ((struct event *)object)->uncharged);
        session_enter(session, ((struct event *)object)->device);
        event_destroy(session, object);
    }
}

void streams_forget_all(struct session *session)
{
    handles_for_each(&session->objects, forget_object, session);
    streams_destroy_all(session);
}

void streams_destroy_all(struct session *session)
{
    const struct devices *devices = &session->server->devices;

    lending_end(session);
    for (unsigned i = 0; i < devices->count; i++) {
        session_visit(session, session_device(session, i));
        list_for_each_safe (struct stream, stream, &session->streams->of_device[i], link) {
            stream_unlist(stream);
            stream_close(stream);
            stream_destroy(stream);
        }
    }
    ended_streams_forget_all(session);
    sm_shares_close_all(session);
}

bool stream_is_busy(const struct stream *stream)
{
    return stream->driver && fence_pending(stream) &&
           driver.cuStreamQuery(stream->driver) == CUDA_ERROR_NOT_READY;
}
