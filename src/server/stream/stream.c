/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, and the order that CUDA promises between the legacy default stream and the others.
 *
 * Work on the legacy stream begins when all earlier work on the client's blocking streams is done.
 * Work on a blocking stream begins when all earlier work on the legacy stream is done. Every stream
 * counts its work. A stream that is to follow another one waits for an event behind the other's
 * work, unless it has waited for that much already. A client with one stream pays nothing.
 */
#include "event.h"
#include "stream_state.h"

#include <stdlib.h>

#include "capacity.h"
#include "cleanup.h"
#include "client_class.h"
#include "ended_streams.h"
#include "fence.h"
#include "lending.h"
#include "log.h"
#include "refused_objects.h"
#include "server_dispatch.h"
#include "sm_share.h"

static struct list *streams_beside(const struct stream *stream)
{
    return &stream->session->streams->of_device[stream->device->ordinal];
}

/* Records the event behind all that `stream` was given. */
static CUresult stream_mark(struct stream *stream)
{
    if (stream->order && stream->ordered_work == stream->work)
        return CUDA_SUCCESS;

    CUresult result = CUDA_SUCCESS;
    if (!stream->order)
        result = driver.cuEventCreate(&stream->order, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(stream->order, stream->driver);
    if (result == CUDA_SUCCESS)
        stream->ordered_work = stream->work;
    return result;
}

/* What `stream` is given from now on begins behind all that `other` was given so far. */
static CUresult stream_follow(struct stream *stream, struct stream *other)
{
    CUresult result = stream_mark(other);

    if (result == CUDA_SUCCESS)
        result = driver.cuStreamWaitEvent(stream->driver, other->order, 0);
    return result;
}

static CUresult legacy_follow_blocking(struct stream *legacy, struct stream *stream)
{
    if (!stream->blocking || !stream->driver || stream->seen_by_legacy == stream->work)
        return CUDA_SUCCESS;

    CUresult result = stream_follow(legacy, stream);
    if (result == CUDA_SUCCESS)
        stream->seen_by_legacy = stream->work;
    return result;
}

static CUresult legacy_follow_all(struct stream *legacy)
{
    list_for_each (struct stream, stream, streams_beside(legacy), link) {
        if (stream->sm_share != legacy->sm_share)
            continue;
        CUresult result = legacy_follow_blocking(legacy, stream);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

static CUresult blocking_follow_legacy(struct stream *stream)
{
    struct stream *legacy = stream->sm_share->legacy;

    if (!legacy || !legacy->driver || stream->legacy_seen == legacy->work)
        return CUDA_SUCCESS;

    CUresult result = stream_follow(stream, legacy);
    if (result == CUDA_SUCCESS)
        stream->legacy_seen = legacy->work;
    return result;
}

CUresult stream_begin(struct stream *stream)
{
    if (!stream->driver)
        return CUDA_ERROR_INVALID_HANDLE;
    fence_expect_work(stream); /* a fault may be noticed before stream_end() */
    CUresult result = session_enter(stream->session, stream->device);

    if (result == CUDA_SUCCESS && stream->legacy)
        result = legacy_follow_all(stream);
    else if (result == CUDA_SUCCESS && stream->blocking)
        result = blocking_follow_legacy(stream);
    return result;
}

CUresult stream_end_by(struct stream *stream, uint32_t seq, CUresult result, fence_writer *write)
{
    stream->work++;
    stream_count_more(stream, 1);
    if (!seq) {
        fence_expect_work(stream);
        return result;
    }
    CUresult fenced = write(stream, seq);
    return result != CUDA_SUCCESS ? result : fenced;
}

CUresult stream_end(struct stream *stream, uint32_t seq, CUresult result)
{
    return stream_end_by(stream, seq, result, fence_write);
}

/* A client below normal priority gets the lowest one; the others keep one level above it, and
 * critical ones two. */
int stream_grant_priority(const struct session *session, const struct device *device, int asked)
{
    int least = device->record.priority_least, greatest = device->record.priority_greatest;
    int above = session->limits.class == CLASS_CRITICAL ? 2 : 1;
    int granted = session->limits.priority ? least : asked - above;

    if (granted > least)
        granted = least;
    return granted < greatest ? greatest : granted;
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

    list_append(streams_beside(stream), &stream->link);
}

void stream_unlist(struct stream *stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    list_remove(&stream->link);
}

static void set_driver(struct stream *stream, CUstream fresh)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    stream->driver = fresh;
}

static void stream_enlist(struct stream *stream)
{
    stream->sm_share->streams++;
    enlist_under_lock(stream);
    if (stream->legacy && !stream->sm_share->legacy)
        stream->sm_share->legacy = stream;
    object_charge(stream->session, QUOTA_STREAMS, stream->uncharged);
}

static struct list *observers_of(const struct stream *stream)
{
    return &stream->session->server->streams->observers;
}

static void announce_ready(struct stream *stream)
{
    list_for_each (struct stream_observer, observer, observers_of(stream), link) {
        if (observer->ready)
            observer->ready(stream);
    }
}

static CUresult make_in_partition(const struct partition *partition, int priority,
                                  CUstream *ret_stream)
{
    if (partition)
        return driver.cuGreenCtxStreamCreate(ret_stream, partition->green, CU_STREAM_NON_BLOCKING,
                                             priority);
    return driver.cuStreamCreateWithPriority(ret_stream, CU_STREAM_NON_BLOCKING, priority);
}

static CUresult make_stream_in(const struct stream *stream, const struct partition *partition,
                               int priority, CUstream *ret_stream)
{
    struct capacity_use use;
    CUresult result =
        capacity_begin(stream->session, stream->device, CAPACITY_STREAM, "cuStreamCreate", &use);

    if (result != CUDA_SUCCESS)
        return result;
    result = make_in_partition(partition, priority, ret_stream);
    capacity_end(stream->session, stream->device, &use, result);
    return result;
}

static CUresult make_driver_stream(struct stream *stream, CUstream *ret_stream)
{
    stream->granted_priority =
        stream_grant_priority(stream->session, stream->device, stream->priority);
    return make_stream_in(stream, stream->sm_share->partition, stream->granted_priority,
                          ret_stream);
}

static void drop_driver_stream(const struct stream *stream, CUstream dropped)
{
    if (!dropped)
        return;
    driver.cuStreamDestroy_v2(dropped);
    capacity_give(stream->device, CAPACITY_STREAM);
}

/* `next` begins behind all that the driver's stream was given. */
static CUresult stream_continue_in(struct stream *stream, CUstream next)
{
    CUresult result = stream_mark(stream);

    return result == CUDA_SUCCESS ? driver.cuStreamWaitEvent(next, stream->order, 0) : result;
}

/* Replaces the driver's stream by one in the partition and with the priority that the client has
 * now. */
static CUresult stream_renew(struct stream *stream)
{
    CUstream fresh = NULL;
    CUresult result = make_driver_stream(stream, &fresh);

    if (result == CUDA_SUCCESS && stream->driver)
        result = stream_continue_in(stream, fresh);
    if (result != CUDA_SUCCESS) {
        drop_driver_stream(stream, fresh);
        return result;
    }
    CUstream old = stream->driver;
    announce_ready(stream);
    set_driver(stream, fresh);
    drop_driver_stream(stream, old);
    return CUDA_SUCCESS;
}

/* The streams of a share move one by one. One that cannot be replaced stays where it is. */
static void move_streams(struct session *session, const struct sm_share *share)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct stream, stream, session_device_streams(session, share->device), link) {
        if (stream->sm_share != share || result != CUDA_SUCCESS)
            continue;
        result = session_enter(session, stream->device);
        if (result == CUDA_SUCCESS)
            result = stream_renew(stream);
    }
    if (result != CUDA_SUCCESS)
        session_log_event(session, 0, ": streams keep their old limits: %s",
                          driver_error_name(result));
}

/* ---- where an own share borrows ---- */

static void swap_driver(struct stream *stream, CUstream other)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    stream->other = stream->driver;
    stream->driver = other;
    stream->is_away = !stream->is_away;
}

/* Borrowed multiprocessors are used at the lowest priority, so that blocks of their owner's kernels
 * start before others. */
static CUresult find_other(const struct stream *stream, CUstream *ret_other)
{
    *ret_other = stream->other;
    return *ret_other ? CUDA_SUCCESS
                      : make_stream_in(stream, stream->sm_share->lent,
                                       stream->device->record.priority_least, ret_other);
}

static CUresult stream_change_place(struct stream *stream)
{
    CUstream other = NULL;
    CUresult result = session_enter(stream->session, stream->device);

    if (result == CUDA_SUCCESS)
        result = find_other(stream, &other);
    if (result == CUDA_SUCCESS)
        result = stream_continue_in(stream, other);
    if (result == CUDA_SUCCESS) {
        swap_driver(stream, other);
        flow_control_set_time(&stream->flow.control,
                              stream->is_away ? FLOW_LENT_NS : FLOW_IN_FLIGHT_NS);
    } else if (other != stream->other)
        drop_driver_stream(stream, other);
    return result;
}

/* Only streams that were made in their own part go elsewhere, so that none has to be made when they
 * come back. */
void streams_change_place(struct session *session, const struct device *device, bool borrows)
{
    struct sm_share *share = sm_share_find(session, device, 0);
    CUresult result = CUDA_SUCCESS;

    share->borrows = borrows;
    list_for_each (struct stream, stream, session_device_streams(session, device), link) {
        if (stream->sm_share == share && stream->driver && stream->is_away != borrows &&
            result == CUDA_SUCCESS)
            result = stream_change_place(stream);
    }
    if (result != CUDA_SUCCESS)
        log_line("Client " CLIENT_FORMAT ": streams stay where they are on device %d: %s",
                 CLIENT_ARGS(session), device->ordinal, driver_error_name(result));
}

static CUstream steal_other(struct stream *stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    return steal_pointer(stream->other);
}

/* All streams are in their own parts afterwards, and have no other. */
static void stop_borrowing(struct session *session, const struct device *device)
{
    streams_change_place(session, device, false);
    list_for_each (struct stream, stream, session_device_streams(session, device), link) {
        if (stream->other && session_enter(session, device) == CUDA_SUCCESS)
            drop_driver_stream(stream, steal_other(stream));
    }
}

void streams_follow_limits(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++)
        stop_borrowing(session, &session->server->devices.device[i]);
    sm_shares_follow_limits(session, move_streams);
    lending_begin(session);
}

static int announce_creation(struct stream *stream)
{
    int error = 0;

    list_for_each (struct stream_observer, observer, observers_of(stream), link) {
        if (observer->created && !error)
            error = observer->created(stream);
    }
    return error;
}

static void announce_end(struct stream *stream)
{
    list_for_each (struct stream_observer, observer, observers_of(stream), link) {
        if (observer->closing)
            observer->closing(stream);
    }
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
    CUresult result = announce_creation(stream)
                          ? CUDA_ERROR_OUT_OF_MEMORY
                          : session_put(session, WIRE_STREAM, in->hStream, stream);
    if (result != CUDA_SUCCESS) {
        announce_end(stream);
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
    if (stream->uncharged)
        return CUDA_ERROR_OUT_OF_MEMORY;

    CUstream fresh = NULL;
    result = session_enter(session, device);
    if (result == CUDA_SUCCESS)
        result = make_driver_stream(stream, &fresh);
    set_driver(stream, fresh);
    announce_ready(stream);
    if (result == CUDA_SUCCESS && stream->sm_share->borrows)
        stream_change_place(stream);
    return result;
}

void stream_close(struct stream *stream)
{
    announce_end(stream);
    stream_flow_end(stream);
}

void stream_destroy(struct stream *stream)
{
    if (stream->order)
        driver.cuEventDestroy_v2(stream->order);
    stream_drop_driver(stream);
    free(stream);
}

static CUstream steal_driver(struct stream *stream)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    return steal_pointer(stream->driver);
}

void stream_drop_driver(struct stream *stream)
{
    drop_driver_stream(stream, steal_other(stream));
    drop_driver_stream(stream, steal_driver(stream));
}

CUresult serve_cuStreamDestroy_v2(struct session *session, const struct wire_cuStreamDestroy_v2 *in,
                                  struct stream *hStream)
{
    struct stream *legacy = hStream->sm_share->legacy;
    CUresult result = session_enter(session, hStream->device);

    /* The legacy stream still has to wait for what this one was given. */
    if (result == CUDA_SUCCESS && legacy && legacy->driver && hStream->driver)
        result = legacy_follow_blocking(legacy, hStream);
    if (legacy == hStream)
        hStream->sm_share->legacy = NULL;
    hStream->sm_share->streams--;
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
    return stream->driver && fence_pending(stream->session, stream->word) &&
           driver.cuStreamQuery(stream->driver) == CUDA_ERROR_NOT_READY;
}
