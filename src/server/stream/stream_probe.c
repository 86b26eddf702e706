/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_probe.h. */
#include "stream_probe.h"

#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "quiesce.h"
#include "spare_events.h"
#include "stream_state.h"

/* The work of most programs ends within microseconds. */
#define PAUSE_NS_MIN (5 * NS_PER_US)
#define PAUSE_NS_MAX (200 * NS_PER_US)

static void add_event(struct stream_probe *probe, const struct stream *stream)
{
    CUevent event;

    if (probe->count == STREAM_PROBE_MAX || spare_event_take(probe->device, &event) != CUDA_SUCCESS)
        return;
    if (driver.cuEventRecord(event, stream->driver) != CUDA_SUCCESS) {
        spare_event_keep(probe->device, event);
        return;
    }
    probe->owners[probe->count] = stream->session->id;
    probe->events[probe->count++] = event;
}

/* The lock keeps the streams alive, and with them the driver's. */
static void add_session(struct stream_probe *probe, const struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->streams->lock);

    list_for_each (struct stream, stream, session_device_streams(session, probe->device), link) {
        if (stream->device == probe->device && stream_is_busy(stream))
            add_event(probe, stream);
    }
}

/* False where the context cannot be entered. */
static bool begin_empty(struct stream_probe *probe, struct session *session,
                        const struct device *device)
{
    probe->device = device;
    probe->count = 0;
    return session_visit(session, device) == CUDA_SUCCESS;
}

void stream_probe_begin(struct stream_probe *probe, struct session *session,
                        const struct device *device)
{
    if (!begin_empty(probe, session, device))
        return;

    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, other, &server->sessions, link) {
        if (other->phase != SESSION_ATTACHING)
            add_session(probe, other);
    }
}

bool stream_probe_try(struct stream_probe *probe, struct session *session,
                      const struct device *device, uint64_t timeout_ns)
{
    probe->count = 0;
    if (!quiesce_wait_try_for(device->quiesce, timeout_ns))
        return false;
    stream_probe_begin(probe, session, device);
    quiesce_wait_end(device->quiesce);
    return true;
}

/* Gives an event back; the last one takes its place. */
static void remove_at(struct stream_probe *probe, unsigned index)
{
    spare_event_keep(probe->device, probe->events[index]);
    probe->count--;
    probe->events[index] = probe->events[probe->count];
    probe->owners[index] = probe->owners[probe->count];
}

void stream_probe_end(struct stream_probe *probe)
{
    while (probe->count)
        remove_at(probe, probe->count - 1);
}

bool stream_probe_is_done(struct stream_probe *probe)
{
    for (unsigned i = probe->count; i-- > 0;) {
        if (driver.cuEventQuery(probe->events[i]) != CUDA_ERROR_NOT_READY)
            remove_at(probe, i);
    }
    return probe->count == 0;
}

bool stream_probe_await(struct stream_probe *probe, uint64_t timeout_ns)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS_MIN};
    uint64_t deadline = clock_ns() + timeout_ns;
    bool done;

    while (!(done = stream_probe_is_done(probe)) && clock_ns() < deadline) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_NS_MAX)
            pause.tv_nsec *= 2;
    }
    return done;
}

bool stream_probe_has(const struct stream_probe *probe, const struct session *session)
{
    for (unsigned i = 0; i < probe->count; i++) {
        if (probe->owners[i] == session->id)
            return true;
    }
    return false;
}
