/* SPDX-License-Identifier: Apache-2.0 */
/* See idle_probe.h. */
#include "idle_probe.h"

#include <time.h>

#include "cleanup.h"
#include "gate.h"
#include "idle.h"

/* The work of most programs ends within microseconds. */
#define PAUSE_NS_MIN (5 * NS_PER_US)
#define PAUSE_NS_MAX (200 * NS_PER_US)

/* What idle_source.visit_busy() is called with. */
struct probed_session {
    struct idle_probe *probe;
    uint32_t id;
};

static void add_checkpoint(void *context, CUstream stream)
{
    const struct probed_session *probed = context;
    struct idle_probe *probe = probed->probe;

    if (probe->count == IDLE_PROBE_MAX ||
        checkpoint_make(&probe->checkpoints[probe->count], probe->device, stream) != CUDA_SUCCESS)
        return;
    probe->owners[probe->count++] = probed->id;
}

static void add_session(struct idle_probe *probe, const struct session *session)
{
    struct probed_session probed = {probe, session->id};

    session->server->idle.source->visit_busy(session, probe->device, add_checkpoint, &probed);
}

/* False where the context cannot be entered. */
static bool begin_empty(struct idle_probe *probe, struct session *session,
                        const struct device *device)
{
    probe->device = device;
    probe->count = 0;
    return session_visit(session, device) == CUDA_SUCCESS;
}

void idle_probe_begin(struct idle_probe *probe, struct session *session,
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

bool idle_probe_try(struct idle_probe *probe, struct session *session, const struct device *device,
                    uint64_t timeout_ns)
{
    probe->count = 0;
    if (!gate_try_enter_for(device->gate, timeout_ns))
        return false;
    idle_probe_begin(probe, session, device);
    gate_leave(device->gate);
    return true;
}

/* Drops a checkpoint. The last one takes its place. */
static void remove_at(struct idle_probe *probe, unsigned index)
{
    checkpoint_drop(&probe->checkpoints[index]);
    probe->count--;
    probe->checkpoints[index] = probe->checkpoints[probe->count];
    probe->owners[index] = probe->owners[probe->count];
}

void idle_probe_end(struct idle_probe *probe)
{
    while (probe->count)
        remove_at(probe, probe->count - 1);
}

bool idle_probe_is_done(struct idle_probe *probe)
{
    for (unsigned i = probe->count; i-- > 0;) {
        if (checkpoint_is_reached(&probe->checkpoints[i]))
            remove_at(probe, i);
    }
    return probe->count == 0;
}

bool idle_probe_await(struct idle_probe *probe, uint64_t timeout_ns)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS_MIN};
    uint64_t deadline = clock_ns() + timeout_ns;
    bool done;

    while (!(done = idle_probe_is_done(probe)) && clock_ns() < deadline) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_NS_MAX)
            pause.tv_nsec *= 2;
    }
    return done;
}

bool idle_probe_has(const struct idle_probe *probe, const struct session *session)
{
    for (unsigned i = 0; i < probe->count; i++) {
        if (probe->owners[i] == session->id)
            return true;
    }
    return false;
}
