/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there is work that takes long, and waiting until there is none. */
#include "long_work.h"

#include "cleanup.h"
#include "clock.h"
#include "quiesce.h"
#include "stream_probe.h"
#include "stream_state.h"

/* A client is held back for this long in the first round in which it is, for twice as long in the
 * next, and so on, because its kernel may wait for what the client launches next. */
#define HOLD_NS (1 * NS_PER_SEC)
#define HOLD_DOUBLINGS_MAX 6u

/* Work of which some ends this often is not long. */
#define BRIEF_STEP_NS (2 * LONG_WORK_NS)

/* For so long a client is taken for one that has long work again soon. */
#define RECENT_NS (1 * NS_PER_SEC)

/* Work that is not done after this time may be the end of a long kernel, behind which the next one
 * comes at once. Its client is held back, but not for longer than most calls take. */
#define PROMPT_NS (1 * NS_PER_MS)
#define BRIEF_HOLD_NS (250 * NS_PER_MS)

bool long_work_exists(struct session *session, const struct device *device)
{
    struct stream_probe probe;

    if (!quiesce_wait_try_for(device->quiesce, LONG_WORK_NS))
        return true;
    stream_probe_begin(&probe, session, device);
    bool done = stream_probe_await(&probe, LONG_WORK_NS);
    stream_probe_end(&probe);
    quiesce_wait_end(device->quiesce);
    return !done;
}

/* Whether the client's work comes forward in small steps, however much of it is in flight: to hold
 * it back costs it nothing until that is done. */
static bool is_brief(const struct session *session, uint64_t now)
{
    uint64_t last = streams_progressed_at(session);

    return last && (now < last || now - last < BRIEF_STEP_NS);
}

static bool owns_work(const struct session *session, const struct session *other,
                      const struct stream_probe *probe)
{
    return other != session && stream_probe_has(probe, other);
}

static bool is_all_brief(struct session *session, const struct stream_probe *probe)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, probe) && !is_brief(other, now))
            return false;
    }
    return !stream_probe_has(probe, session);
}

/* Notes whose work is long, and with `calm` holds these clients back. Holding its own client back
 * would make a session wait for itself. */
static void note_owners(struct session *session, const struct stream_probe *probe,
                        struct calm *calm)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (!owns_work(session, other, probe) || is_brief(other, now))
            continue;
        other->streams->long_work_seen = now;
        if (calm)
            calm_hold(calm, other, CALM_UNTIL_RELEASED);
    }
}

/* Those that were noted then had long work until now. */
static void note_until_now(struct session *session, const struct stream_probe *work, uint64_t then)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, work) && other->streams->long_work_seen >= then)
            other->streams->long_work_seen = clock_ns();
    }
}

static bool is_recent(uint64_t then, uint64_t now)
{
    return then && (now < then || now - then < RECENT_NS);
}

/* Between the calm moment and the call such a client would launch its next long kernel, and one
 * that waits for its turn launches for certain. */
static bool has_more_to_come(const struct session *session, uint64_t now)
{
    const struct session_streams *streams = session->streams;

    return is_recent(streams->long_work_seen, now) ||
           is_recent(atomic_load_explicit(&streams->long_piece_at, memory_order_relaxed), now) ||
           atomic_load_explicit(&streams->awaits_turn, memory_order_relaxed);
}

static void hold_those_with_more(struct session *session, struct calm *calm)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (other == session || other->phase == SESSION_ATTACHING)
            continue;
        if (has_more_to_come(other, now))
            calm_hold(calm, other, CALM_UNTIL_RELEASED);
    }
}

/* The clients of the work of a probe, some of which may have ended by now. */
static void hold_owners(struct session *session, const struct stream_probe *late, uint64_t until,
                        struct calm *calm)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, late))
            calm_hold(calm, other, until);
    }
}

/* A stream that waits for a value may wait for this session's next call: quiesce_begin() knows what
 * to do about it. */
static bool may_wait(const struct session *session, const struct device *device,
                     const struct calm *calm)
{
    return (calm->patient || !session->stop) && !quiesce_has_waits(device->quiesce);
}

/* When the work of clients that are held last came forward, or `since` if it has not. */
static uint64_t last_progress(const struct session *session, const struct stream_probe *probe,
                              uint64_t since)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, probe) && streams_progressed_at(other) > since)
            since = streams_progressed_at(other);
    }
    return since;
}

/* False when there was no progress for this time (0 = for ever), or waiting makes no sense any
 * more. */
static bool await_end(struct stream_probe *probe, struct session *session, const struct calm *calm,
                      uint64_t timeout_ns)
{
    uint64_t since = clock_ns();

    while (!stream_probe_await(probe, LONG_WORK_NS)) {
        since = last_progress(session, probe, since);
        if (timeout_ns && clock_ns() >= since + timeout_ns)
            return false;
        if (!may_wait(session, probe->device, calm))
            return false;
    }
    return true;
}

/* In the first round nobody is held back but those who had long work a moment ago: a kernel that
 * runs now may be the only long one. A client that has long work again by then would have it
 * always. One whose work is only much is held back as soon as nobody else's is waited for. */
static void await_in_round(struct stream_probe *probe, struct session *session, unsigned round,
                           struct calm *calm)
{
    unsigned doublings = round < HOLD_DOUBLINGS_MAX ? round : HOLD_DOUBLINGS_MAX;
    const struct stream_probe work = *probe;
    uint64_t then = clock_ns();

    if (is_all_brief(session, probe))
        hold_owners(session, probe, CALM_UNTIL_RELEASED, calm);
    note_owners(session, probe, round ? calm : NULL);
    if (!await_end(probe, session, calm, calm->count ? HOLD_NS << doublings : 0))
        calm_release(session->server, calm);
    note_until_now(session, &work, then);
}

/* The streams of those who are held tell all that they will do: true when they are done. The probe
 * stays empty where a call of another client that waits for all streams lasts too long. */
static bool probe_held(struct stream_probe *probe, struct session *session,
                       const struct device *device, struct calm *calm, uint64_t timeout_ns)
{
    calm_await_rest(session->server, calm, LONG_WORK_NS);
    return stream_probe_try(probe, session, device, LONG_WORK_NS) &&
           stream_probe_await(probe, timeout_ns);
}

/* Where some work takes more than a moment, its clients are held back behind it, so that none of
 * them puts a long kernel between this and the call. Leaves a probe of the work that is not done;
 * where it is false and the probe is empty, a call of another client lasts, whose kernel may wait
 * for a client that is held. */
static bool await_short_work(struct stream_probe *probe, struct session *session,
                             const struct device *device, struct calm *calm)
{
    struct stream_probe late;

    hold_those_with_more(session, calm);
    if (probe_held(probe, session, device, calm, PROMPT_NS))
        return true;
    late = *probe;
    if (!late.count || !stream_probe_await(probe, LONG_WORK_NS))
        return false;
    hold_owners(session, &late, clock_ns() + BRIEF_HOLD_NS, calm);
    return probe_held(probe, session, device, calm, LONG_WORK_NS);
}

void long_work_await_calm(struct session *session, const struct device *device, struct calm *calm)
{
    struct stream_probe probe;
    bool calm_now = false;

    stream_pace_seek(session->server);
    for (unsigned round = 0; !calm_now && may_wait(session, device, calm);) {
        calm_now = await_short_work(&probe, session, device, calm);
        if (probe.count)
            await_in_round(&probe, session, round++, calm);
        else if (!calm_now)
            calm_release(session->server, calm);
        stream_probe_end(&probe);
    }
    stream_pace_seek_end(session->server);
}
