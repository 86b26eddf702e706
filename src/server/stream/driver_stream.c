/* SPDX-License-Identifier: Apache-2.0 */
/* See driver_stream.h. */
#include "driver_stream.h"

#include "capacity.h"
#include "cleanup.h"
#include "client_class.h"
#include "lending.h"
#include "log.h"
#include "sm_share.h"
#include "stream_state.h"

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

/* Partner of the lock: idle.c, which visits the driver's streams. Returns what was in the place. */
static CUstream exchange_under_lock(struct stream *stream, CUstream *place, CUstream next)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);
    CUstream before = *place;

    *place = next;
    return before;
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
    if (result == CUDA_SUCCESS)
        capacity_note_stream(stream->device, 1);
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
    capacity_note_stream(stream->device, -1);
}

/* `next` begins behind all that the driver's stream was given. */
static CUresult stream_continue_in(struct stream *stream, CUstream next)
{
    CUresult result = stream_order_record(stream);

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
    streams_announce_ready(stream);
    drop_driver_stream(stream, exchange_under_lock(stream, &stream->driver, fresh));
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

/* All streams are in their own parts afterwards, and have no other. */
static void stop_borrowing(struct session *session, const struct device *device)
{
    streams_change_place(session, device, false);
    list_for_each (struct stream, stream, session_device_streams(session, device), link) {
        if (stream->other && session_enter(session, device) == CUDA_SUCCESS)
            drop_driver_stream(stream, exchange_under_lock(stream, &stream->other, NULL));
    }
}

void streams_follow_limits(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++)
        stop_borrowing(session, &session->server->devices.device[i]);
    sm_shares_follow_limits(session, move_streams);
    lending_begin(session);
}

/* ---- the first, and the end ---- */

CUresult driver_stream_make(struct stream *stream)
{
    CUstream fresh = NULL;
    CUresult result = session_enter(stream->session, stream->device);

    if (result == CUDA_SUCCESS)
        result = make_driver_stream(stream, &fresh);
    exchange_under_lock(stream, &stream->driver, fresh);
    streams_announce_ready(stream);
    if (result == CUDA_SUCCESS && stream->sm_share->borrows)
        stream_change_place(stream);
    return result;
}

void driver_stream_drop(struct stream *stream)
{
    drop_driver_stream(stream, exchange_under_lock(stream, &stream->other, NULL));
    drop_driver_stream(stream, exchange_under_lock(stream, &stream->driver, NULL));
}
