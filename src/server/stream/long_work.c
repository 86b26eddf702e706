/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there is work that takes long, and waiting until there is none. */
#include "long_work.h"

#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "quiesce.h"
#include "stream_probe.h"
#include "stream_state.h"

#define PAUSE_NS (200 * NS_PER_US)

/* A client is held back for this long in the first round in which it is, for twice as long in the
 * next, and so on, because its kernel may wait for what the client launches next. */
#define HOLD_NS (1 * NS_PER_SEC)
#define HOLD_DOUBLINGS_MAX 6u

/* For so long a client is taken for one that has long work again soon. */
#define RECENT_NS (1 * NS_PER_SEC)

/* Work that is not done after this time may be the end of a long kernel, behind which the next one
 * comes at once. Its client is held back, but not for longer than most calls take. */
#define PROMPT_NS (1 * NS_PER_MS)
#define BRIEF_HOLD_NS (250 * NS_PER_MS)

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
    struct stream_probe probe;

    if (!keep_such_calls_away(device->quiesce))
        return true;
    stream_probe_begin(&probe, session, device);
    bool done = stream_probe_await(&probe, LONG_WORK_NS);
    stream_probe_end(&probe);
    quiesce_wait_end(device->quiesce);
    return !done;
}

/* Notes whose work is long, and with `calm` holds these clients back. Holding its own client back
 * would make a session wait for itself. */
static void note_owners(struct session *session, const struct stream_probe *probe,
                        struct calm *calm)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (other == session || !stream_probe_has(probe, other))
            continue;
        other->streams->long_work_seen = clock_ns();
        if (calm)
            calm_hold(calm, other, CALM_UNTIL_RELEASED);
    }
}

/* Between the calm moment and the call such a client would launch its next long kernel. */
static void hold_recent(struct session *session, struct calm *calm)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (other == session || other->phase == SESSION_ATTACHING)
            continue;
        if (other->streams->long_work_seen && now - other->streams->long_work_seen < RECENT_NS)
            calm_hold(calm, other, CALM_UNTIL_RELEASED);
    }
}

/* The clients of some work of a probe that has ended by now. */
static void hold_owners(struct session *session, const struct stream_probe *late, struct calm *calm)
{
    struct server *server = session->server;
    uint64_t until = clock_ns() + BRIEF_HOLD_NS;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (other != session && stream_probe_has(late, other))
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

/* False when the time is over, or waiting makes no sense any more. */
static bool await_end(struct stream_probe *probe, const struct session *session,
                      const struct calm *calm, uint64_t timeout_ns)
{
    uint64_t deadline = timeout_ns ? clock_ns() + timeout_ns : UINT64_MAX;

    while (!stream_probe_await(probe, LONG_WORK_NS)) {
        if (clock_ns() >= deadline || !may_wait(session, probe->device, calm))
            return false;
    }
    return true;
}

/* In the first round nobody is held back but those who had long work a moment ago: a kernel that
 * runs now may be the only long one. A client that has long work again by then would have it
 * always. */
static void await_in_round(struct stream_probe *probe, struct session *session, unsigned round,
                           struct calm *calm)
{
    unsigned doublings = round < HOLD_DOUBLINGS_MAX ? round : HOLD_DOUBLINGS_MAX;

    note_owners(session, probe, round ? calm : NULL);
    if (!await_end(probe, session, calm, calm->count ? HOLD_NS << doublings : 0))
        calm_release(session->server, calm);
}

/* The streams of those who are held tell all that they will do: true when they are done. */
static bool probe_held(struct stream_probe *probe, struct session *session,
                       const struct device *device, struct calm *calm, uint64_t timeout_ns)
{
    calm_await_rest(session->server, calm, LONG_WORK_NS);
    stream_probe_begin(probe, session, device);
    return stream_probe_await(probe, timeout_ns);
}

/* Where some work takes more than a moment, its clients are held back behind it, so that none of
 * them puts a long kernel between this and the call. Leaves a probe of the work that is not done.
 */
static bool await_short_work(struct stream_probe *probe, struct session *session,
                             const struct device *device, struct calm *calm)
{
    struct stream_probe late;

    hold_recent(session, calm);
    if (probe_held(probe, session, device, calm, PROMPT_NS))
        return true;
    late = *probe;
    if (!stream_probe_await(probe, LONG_WORK_NS))
        return false;
    hold_owners(session, &late, calm);
    return probe_held(probe, session, device, calm, LONG_WORK_NS);
}

void long_work_await_calm(struct session *session, const struct device *device, struct calm *calm)
{
    struct stream_probe probe;
    bool calm_now = false;

    for (unsigned round = 0; !calm_now && may_wait(session, device, calm); round++) {
        calm_now = await_short_work(&probe, session, device, calm);
        if (!calm_now)
            await_in_round(&probe, session, round, calm);
        stream_probe_end(&probe);
    }
}
