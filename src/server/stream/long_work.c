/* SPDX-License-Identifier: Apache-2.0 */
/* Events behind the work of all busy streams tell when a call that waits for them would return. */
#include "long_work.h"

#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "fence.h"
#include "quiesce.h"
#include "spare_events.h"
#include "stream_state.h"

#define PAUSE_NS (200 * NS_PER_US)

/* More busy streams than this are not looked at. */
#define EVENTS_MAX 256u

struct probe {
    const struct device *device;
    CUevent events[EVENTS_MAX]; /* each recorded behind the work of a busy stream */
    unsigned count;
};

static bool is_busy(const struct probe *probe, const struct stream *stream)
{
    return stream->device == probe->device && stream->driver &&
           fence_pending(stream->session, stream->word) &&
           driver.cuStreamQuery(stream->driver) == CUDA_ERROR_NOT_READY;
}

static void add_event(struct probe *probe, CUstream stream)
{
    CUevent event;

    if (probe->count == EVENTS_MAX || spare_event_take(probe->device, &event) != CUDA_SUCCESS)
        return;
    if (driver.cuEventRecord(event, stream) == CUDA_SUCCESS)
        probe->events[probe->count++] = event;
    else
        spare_event_keep(probe->device, event);
}

/* The lock keeps the streams alive, and with them the driver's. */
static void add_session(struct probe *probe, const struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->streams->lock);

    list_for_each (struct stream, stream, session_device_streams(session, probe->device), link) {
        if (is_busy(probe, stream))
            add_event(probe, stream->driver);
    }
}

static void add_all_sessions(struct probe *probe, struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase != SESSION_ATTACHING)
            add_session(probe, session);
    }
}

/* Gives the event that was recorded last back when its stream has come to it. */
static bool drop_last_if_done(struct probe *probe)
{
    CUevent event = probe->events[probe->count - 1];

    if (driver.cuEventQuery(event) == CUDA_ERROR_NOT_READY)
        return false;
    spare_event_keep(probe->device, event);
    probe->count--;
    return true;
}

/* False when the time is over. */
static bool await_events(struct probe *probe)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t deadline = clock_ns() + LONG_WORK_NS;

    while (probe->count && clock_ns() < deadline) {
        if (!drop_last_if_done(probe))
            nanosleep(&pause, NULL);
    }
    return probe->count == 0;
}

static bool is_done_soon(struct session *session, const struct device *device)
{
    struct probe probe = {.device = device};

    if (session_visit(session, device) != CUDA_SUCCESS)
        return true;
    add_all_sessions(&probe, session->server);
    bool done = await_events(&probe);
    while (probe.count)
        spare_event_keep(device, probe.events[--probe.count]);
    return done;
}

/* While a call that waits for all streams is being made, the driver's lock is not free. Most of
 * them find the streams idle and take no time. */
static bool keep_such_calls_away(struct quiesce *quiesce)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t deadline = clock_ns() + LONG_WORK_NS;
    bool away;

    while (!(away = quiesce_wait_try(quiesce)) && clock_ns() < deadline)
        nanosleep(&pause, NULL);
    return away;
}

bool long_work_exists(struct session *session, const struct device *device)
{
    if (!keep_such_calls_away(device->quiesce))
        return true;
    bool done = is_done_soon(session, device);
    quiesce_wait_end(device->quiesce);
    return !done;
}
