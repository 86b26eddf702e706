/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's thread moves the mark forward without a lock, and any thread takes it back or
 * records its event, so each change is made only where the mark is still as its author saw it.
 */
#include "print_mark.h"

#include "cleanup.h"
#include "spare_events.h"
#include "stream_state.h"

/* Places of a mark. Numbers of fences are never 0, and have 32 bits. */
#define PLACE_NONE UINT64_C(0)          /* all such kernels are known to be done */
#define PLACE_OPEN (UINT64_C(1) << 32)  /* nothing is behind them */
#define PLACE_EVENT (UINT64_C(2) << 32) /* the event is */
/* Other values: the number of the fence. */

/* Partner of the following: each other. */
static uint64_t load_place(const struct print_mark *mark)
{
    return atomic_load_explicit(&mark->place, memory_order_acquire);
}

static void change_place(struct print_mark *mark, uint64_t from, uint64_t to)
{
    uint_fast64_t expected = from;

    atomic_compare_exchange_strong_explicit(&mark->place, &expected, to, memory_order_acq_rel,
                                            memory_order_relaxed);
}

void print_mark_open(struct stream *stream)
{
    atomic_store_explicit(&stream->print_mark.place, PLACE_OPEN, memory_order_release);
}

void print_mark_fence(struct stream *stream, uint32_t seq)
{
    if (load_place(&stream->print_mark) == PLACE_OPEN)
        change_place(&stream->print_mark, PLACE_OPEN, seq);
}

static bool record_event(struct stream *stream)
{
    struct print_mark *mark = &stream->print_mark;

    return (mark->event || spare_event_take(stream->device, &mark->event) == CUDA_SUCCESS) &&
           driver.cuEventRecord(mark->event, stream->driver) == CUDA_SUCCESS;
}

static void record_locked(struct stream *stream)
{
    struct print_mark *mark = &stream->print_mark;

    if (load_place(mark) == PLACE_OPEN && stream->driver && record_event(stream))
        change_place(mark, PLACE_OPEN, PLACE_EVENT);
}

void print_mark_before_wait(struct stream *stream)
{
    if (load_place(&stream->print_mark) != PLACE_OPEN)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&stream->session->streams->lock);

    record_locked(stream);
}

void print_mark_end(struct stream *stream)
{
    if (stream->print_mark.event)
        spare_event_keep(stream->device, stream->print_mark.event);
    stream->print_mark.event = NULL;
}

/* A stream that its client has ended may have an event in place of the driver's stream. */
static bool is_idle(const struct stream *stream)
{
    CUresult result =
        stream->driver ? driver.cuStreamQuery(stream->driver) : driver.cuEventQuery(stream->order);

    return result != CUDA_ERROR_NOT_READY;
}

static bool place_is_reached(const struct stream *stream, uint64_t place)
{
    switch (place) {
    case PLACE_NONE:
        return true;
    case PLACE_OPEN:
        return is_idle(stream);
    case PLACE_EVENT:
        return driver.cuEventQuery(stream->print_mark.event) != CUDA_ERROR_NOT_READY;
    default:
        return fence_reached(stream, (uint32_t)place);
    }
}

bool print_mark_is_reached_locked(struct stream *stream, bool record)
{
    struct print_mark *mark = &stream->print_mark;
    uint64_t place = load_place(mark);

    if (place_is_reached(stream, place)) {
        change_place(mark, place, PLACE_NONE);
        return true;
    }
    if (record)
        record_locked(stream);
    return false;
}

static bool list_is_reached_locked(struct list *streams, const struct device *device, bool record)
{
    bool reached = true;

    list_for_each (struct stream, stream, streams, link) {
        if (stream->device == device)
            reached &= print_mark_is_reached_locked(stream, record);
    }
    return reached;
}

bool print_marks_are_reached(const struct session *session, const struct device *device,
                             bool record)
{
    struct session_streams *streams = session->streams;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&streams->lock);
    bool reached = list_is_reached_locked(session_device_streams(session, device), device, record);

    return list_is_reached_locked(&streams->ended, device, record) && reached;
}
