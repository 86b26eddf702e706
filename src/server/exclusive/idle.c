/* SPDX-License-Identifier: Apache-2.0 */
/* See idle.h. */
#include "idle.h"

#include "cleanup.h"
#include "gate.h"
#include "idle_probe.h"
#include "suspend.h"

/* Work of which some ends this often is not long. */
#define BRIEF_STEP_NS (2 * LONG_WORK_NS)

/* A session that has had long work is expected to have more for this time. */
#define RECENT_NS (1 * NS_PER_SEC)

void idle_register(struct server *server, const struct idle_source *source)
{
    server->idle.source = source;
}

bool idle_is_awaited(const struct server *server)
{
    return server->idle.source && !server->idle.ignored;
}

void idle_waiter_begin(struct server *server)
{
    atomic_fetch_add_explicit(&server->idle.waiters, 1, memory_order_relaxed);
}

void idle_waiter_end(struct server *server)
{
    atomic_fetch_sub_explicit(&server->idle.waiters, 1, memory_order_relaxed);
}

bool idle_has_long_work(struct session *session, const struct device *device)
{
    struct idle_probe probe;

    if (!gate_try_enter_for(device->gate, LONG_WORK_NS))
        return true;
    idle_probe_begin(&probe, session, device);
    bool done = idle_probe_await(&probe, LONG_WORK_NS);
    idle_probe_end(&probe);
    gate_leave(device->gate);
    return !done;
}

static struct work_progress progress_of(const struct session *session)
{
    return session->server->idle.source->progress(session);
}

/* Whether the client's work comes forward in small steps, however much of it is in flight. To
 * suspend it costs it nothing until that is done. */
static bool is_brief(const struct session *session, uint64_t now)
{
    uint64_t last = progress_of(session).at;

    return last && (now < last || now - last < BRIEF_STEP_NS);
}

static bool owns_work(const struct session *session, const struct session *other,
                      const struct idle_probe *probe)
{
    return other != session && idle_probe_has(probe, other);
}

static bool is_all_brief(struct session *session, const struct idle_probe *probe)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, probe) && !is_brief(other, now))
            return false;
    }
    return !idle_probe_has(probe, session);
}

/* Notes whose work is long, and with `call` suspends these sessions. A session that suspended
 * itself would wait for itself. */
static void note_owners(struct session *session, const struct idle_probe *probe,
                        struct exclusive_call *call)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (!owns_work(session, other, probe) || is_brief(other, now))
            continue;
        other->long_work_seen = now;
        if (call)
            suspend_session(call, other, SUSPENDED_UNTIL_END);
    }
}

/* Sessions that were noted at `then` had long work until now. */
static void note_until_now(struct session *session, const struct idle_probe *work, uint64_t then)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, work) && other->long_work_seen >= then)
            other->long_work_seen = clock_ns();
    }
}

static bool is_recent(uint64_t then, uint64_t now)
{
    return then && (now < then || now - then < RECENT_NS);
}

/* Between the idle point and the call such a client would launch its next long kernel. One that
 * waits because of the work it has in flight launches for certain. */
static bool has_more_to_come(const struct session *session, uint64_t now)
{
    struct work_progress progress = progress_of(session);

    return is_recent(session->long_work_seen, now) || is_recent(progress.long_step_at, now) ||
           progress.waits_in_flight;
}

static void suspend_clients_with_more(struct session *session, struct exclusive_call *call)
{
    struct server *server = session->server;
    uint64_t now = clock_ns();
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (other == session || other->phase == SESSION_ATTACHING)
            continue;
        if (has_more_to_come(other, now))
            suspend_session(call, other, SUSPENDED_UNTIL_END);
    }
}

/* The clients of the work of a probe, some of which may have ended by now. */
static void suspend_owners(struct session *session, const struct idle_probe *late, uint64_t until,
                           struct exclusive_call *call)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        if (owns_work(session, other, late))
            suspend_session(call, other, until);
    }
}

/* A stream that waits for a value may wait for this session's next call: gate_close() knows what
 * to do about it. */
static bool may_wait(const struct session *session, const struct device *device,
                     const struct exclusive_call *call)
{
    return (call->at_end || !session->stop) && !gate_has_waits(device->gate);
}

/* When the work of the probe's clients last came forward, or `since` if it has not. */
static uint64_t last_progress(const struct session *session, const struct idle_probe *probe,
                              uint64_t since)
{
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, other, &server->sessions, link) {
        uint64_t at = progress_of(other).at;

        if (owns_work(session, other, probe) && at > since)
            since = at;
    }
    return since;
}

/* False when there was no progress for this time (0 = indefinitely), or may_wait() has become
 * false. */
static bool await_end(struct idle_probe *probe, struct session *session,
                      const struct exclusive_call *call, uint64_t timeout_ns)
{
    uint64_t since = clock_ns();

    while (!idle_probe_await(probe, LONG_WORK_NS)) {
        since = last_progress(session, probe, since);
        if (timeout_ns && clock_ns() >= since + timeout_ns)
            return false;
        if (!may_wait(session, probe->device, call))
            return false;
    }
    return true;
}

/* The first round suspends only clients that had long work a moment ago: a kernel that runs now may
 * be the only long one. A client that has long work again by the next round would have it always.
 * Where all work of others is brief, its clients are suspended at once. */
static void await_in_round(struct idle_probe *probe, struct session *session, unsigned round,
                           struct exclusive_call *call)
{
    unsigned doublings = round < EXCLUSIVE_DOUBLINGS_MAX ? round : EXCLUSIVE_DOUBLINGS_MAX;
    const struct idle_probe work = *probe;
    uint64_t then = clock_ns();

    if (is_all_brief(session, probe))
        suspend_owners(session, probe, SUSPENDED_UNTIL_END, call);
    note_owners(session, probe, round ? call : NULL);
    if (!await_end(probe, session, call, call->count ? EXCLUSIVE_ROUND_NS / 2 << doublings : 0))
        suspend_end(session->server, call);
    note_until_now(session, &work, then);
}

/* Suspended clients add nothing to their streams: true when these are done. The probe stays empty
 * where another exclusive call takes too long. */
static bool probe_suspended(struct idle_probe *probe, struct session *session,
                            const struct device *device, struct exclusive_call *call,
                            uint64_t timeout_ns)
{
    suspend_await_rest(session->server, call, LONG_WORK_NS);
    return idle_probe_try(probe, session, device, LONG_WORK_NS) &&
           idle_probe_await(probe, timeout_ns);
}

/* Where some work takes more than a moment, its clients are suspended behind it. So none of them
 * puts a long kernel between this and the call. Leaves a probe of the work that is not done. Where
 * it is false and the probe is empty, another exclusive call lasts, whose kernel may wait for a
 * suspended client. */
static bool await_short_work(struct idle_probe *probe, struct session *session,
                             const struct device *device, struct exclusive_call *call)
{
    struct idle_probe late;

    suspend_clients_with_more(session, call);
    if (probe_suspended(probe, session, device, call, EXCLUSIVE_PROMPT_NS))
        return true;
    late = *probe;
    if (!late.count || !idle_probe_await(probe, LONG_WORK_NS))
        return false;
    suspend_owners(session, &late, clock_ns() + EXCLUSIVE_BRIEF_NS, call);
    return probe_suspended(probe, session, device, call, LONG_WORK_NS);
}

void idle_await(struct session *session, const struct device *device, struct exclusive_call *call)
{
    struct idle_probe probe;
    bool is_idle = false;

    if (!idle_is_awaited(session->server))
        return;
    idle_waiter_begin(session->server);
    for (unsigned round = 0; !is_idle && may_wait(session, device, call);) {
        is_idle = await_short_work(&probe, session, device, call);
        if (probe.count)
            await_in_round(&probe, session, round++, call);
        else if (!is_idle)
            suspend_end(session->server, call);
        idle_probe_end(&probe);
    }
    idle_waiter_end(session->server);
}
