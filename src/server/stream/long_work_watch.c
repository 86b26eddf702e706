/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is recorded for this: a stream that is busy with the same fence to come says enough. */
#include "long_work_watch.h"

#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "fence.h"
#include "gate.h"
#include "idle.h"
#include "log.h"
#include "stream_state.h"

/* Long work keeps a stream busy for so many rounds after the one that sees it first. No fence of it
 * comes to pass meanwhile. */
#define LONG_ROUNDS 2u

/* Between two checkpoints of a client whose kernels are short lies less. */
#define PROGRESS_NS (200 * NS_PER_MS)

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
    uint32_t fence = fence_value(stream);

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
    uint64_t bit = 1ull << device->ordinal;
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
    if (workers && server->streams->long_work[device->ordinal].idle_rounds >= LOGGED_ROUNDS)
        log_line("Long kernels run on device %d", device->ordinal);
    server->streams->long_work[device->ordinal].workers = workers;
    server->streams->long_work[device->ordinal].idle_rounds =
        workers ? 0 : server->streams->long_work[device->ordinal].idle_rounds + 1;
}

static bool has_long_work_of_others(const struct session *session)
{
    const struct server *server = session->server;

    for (unsigned i = 0; i < server->devices.count; i++) {
        unsigned own = session->streams->long_work_mask >> i & 1;

        if (session->device_mask >> i & 1 && server->streams->long_work[i].workers > own)
            return true;
    }
    return false;
}

/* What began a moment ago has not been seen, so a new client asks before its first code in any
 * case. */
static void tell_client(const struct session *session)
{
    bool wanted = session->streams->may_ask &&
                  (!session->streams->has_asked || has_long_work_of_others(session));

    if (wanted != session->streams->move_wanted)
        channel_server_want_move(session->channel, wanted);
    session->streams->move_wanted = wanted;
}

static void tell_all(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_SERVING)
            tell_client(session);
    }
}

static bool has_any_long_work(const struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        if (server->streams->long_work[i].workers)
            return true;
    return false;
}

void long_work_watch(struct server *server)
{
    if (!server->asks_for_lanes)
        return;
    for (unsigned i = 0; i < server->devices.count; i++)
        watch_context(server, &server->devices.device[i]);
    tell_all(server);
    server->streams->long_work_seen = has_any_long_work(server);
}

void long_work_greet(const struct session *session, bool may_ask)
{
    struct session_streams *streams = session->streams;

    streams->may_ask = streams->move_wanted = may_ask && session->server->asks_for_lanes;
    if (streams->may_ask)
        channel_server_want_move(session->channel, true);
}

/* A client that has not used a device yet may use any. */
static bool may_use(const struct session *session, unsigned ordinal)
{
    return !session->device_mask || session->device_mask >> ordinal & 1;
}

bool long_work_is_in_the_way(struct session *session)
{
    const struct devices *devices = &session->server->devices;

    session->streams->has_asked = true;
    for (unsigned i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[i];

        if (may_use(session, i) && session_visit(session, device) == CUDA_SUCCESS &&
            idle_has_long_work(session, device))
            return true;
    }
    return false;
}

bool long_work_is_seen(const struct server *server)
{
    return server->streams->long_work_seen;
}

bool long_work_tell(const struct server *server)
{
    bool seen = long_work_is_seen(server);

    server->streams->long_work_told = seen;
    return seen;
}

bool long_work_is_news(const struct server *server)
{
    return long_work_is_seen(server) && !server->streams->long_work_told;
}
