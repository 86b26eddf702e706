/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is recorded for this: a stream that is busy with the same fence to come says enough. */
#include "long_work_watch.h"

#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "fence.h"
#include "gate.h"
#include "log.h"
#include "placement.h"
#include "stream_state.h"

/* Long work keeps a stream busy for so many rounds after the one that sees it first, and no fence
 * of it comes to pass meanwhile. */
#define LONG_ROUNDS 2u

/* Between two checkpoints of a client whose kernels are short lies less. */
#define PROGRESS_NS (200 * NS_PER_MS)

/* So many rounds without long work make a context worth going back to. */
#define IDLE_ROUNDS 20u

/* After so many the log says it when there is long work again. */
#define LOGGED_ROUNDS 5u

/* A stream that is given short work without a fence passes checkpoints. */
static bool makes_progress(const struct stream *stream)
{
    uint64_t at = atomic_load_explicit(&stream->flow.progressed_at, memory_order_relaxed);

    return clock_ns() - at < PROGRESS_NS;
}

static bool has_long_work(struct stream *stream)
{
    uint32_t fence = fence_value(stream->session->window, stream->word);

    if (!stream_is_busy(stream) || fence != stream->watched_fence || makes_progress(stream))
        stream->watched_rounds = 0;
    else if (stream->watched_rounds < LONG_ROUNDS)
        stream->watched_rounds++;
    stream->watched_fence = fence;
    return stream->watched_rounds >= LONG_ROUNDS;
}

static bool watch_session(const struct device *device, const struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->streams->lock);
    bool found = false;

    list_for_each (struct stream, stream, session_device_streams(session, device), link) {
        if (stream->device == device)
            found |= has_long_work(stream);
    }
    return found;
}

/* The gate is held, so no call that waits for all streams makes the queries wait. */
static unsigned count_workers(struct server *server, const struct device *device)
{
    uint64_t bit = 1ull << device->index;
    unsigned workers = 0;

    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase != SESSION_SERVING)
            continue;
        bool found = watch_session(device, session);
        session->streams->long_work_mask &= ~bit;
        session->streams->long_work_mask |= found ? bit : 0;
        workers += found;
    }
    return workers;
}

/* While such a call is being made, what was seen last holds. */
static void watch_context(struct server *server, const struct device *device)
{
    if (device_enter(device) != CUDA_SUCCESS || !gate_try_enter(device->gate))
        return;
    unsigned workers = count_workers(server, device);

    gate_leave(device->gate);
    if (workers && server->streams->long_work[device->index].idle_rounds >= LOGGED_ROUNDS)
        log_line("Long kernels run in the %s context of device %u",
                 device->index == (unsigned)device->ordinal ? "primary" : "spare",
                 (unsigned)device->ordinal);
    server->streams->long_work[device->index].workers = workers;
    server->streams->long_work[device->index].idle_rounds =
        workers ? 0 : server->streams->long_work[device->index].idle_rounds + 1;
}

static bool wants_move_on(const struct session *session, unsigned ordinal)
{
    const struct server *server = session->server;
    bool in_spare = session_is_in_spare(session, ordinal);
    unsigned spare = server->devices.count + ordinal;
    unsigned here = in_spare ? spare : ordinal, there = in_spare ? ordinal : spare;
    unsigned own = session->streams->long_work_mask >> here & 1;

    if (server->streams->long_work[there].workers)
        return false;
    return server->streams->long_work[here].workers > own ||
           (in_spare && server->streams->long_work[there].idle_rounds >= IDLE_ROUNDS);
}

static void tell(const struct session *session)
{
    bool wanted = false;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        wanted |= session->device_mask >> i & 1 && wants_move_on(session, i);
    if (wanted != session->streams->move_wanted)
        channel_server_want_move(session->channel, wanted);
    session->streams->move_wanted = wanted;
}

static void tell_all(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_SERVING)
            tell(session);
    }
}

void long_work_watch(struct server *server)
{
    if (!server->devices.has_spares && !server->streams->reports_long_work)
        return;
    for (unsigned i = 0; i < devices_context_count(&server->devices); i++)
        watch_context(server, &server->devices.device[i]);
    if (server->devices.has_spares)
        tell_all(server);
}

bool long_work_is_seen(const struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        if (server->streams->long_work[i].workers)
            return true;
    return false;
}
