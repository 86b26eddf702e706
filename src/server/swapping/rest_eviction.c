/* SPDX-License-Identifier: Apache-2.0 */
/* See rest_eviction.h. */
#include "rest_eviction.h"

#include "channel_server.h"
#include "cleanup.h"
#include "client_class.h"
#include "clock.h"
#include "fence.h"
#include "session_life.h"
#include "suspend_arrival.h"
#include "suspend_order.h"
#include "swapping.h"

bool rest_eviction_is_under_way(const struct session *session)
{
    return session->swapping->rest.is_under_way;
}

uint64_t rest_eviction_ms(const struct session *session)
{
    uint64_t since = session->swapping->rest.since, now = clock_ns();

    return since && now > since ? (now - since) / NS_PER_MS : 0;
}

static bool has_worked(const struct session *session, struct rest_eviction *rest)
{
    uint32_t taken = rest->taken;

    return channel_server_queued(session->channel, &rest->taken) || taken != rest->taken ||
           session->life->load.busy_samples || fence_any_pending(session);
}

static bool is_away(const struct session *session)
{
    return session->swapping->order.out;
}

/* What others have ordered comes first, and a client that has moved gets its memory first. A
 * critical one would wait for its memory at its next request. */
static bool may_be_asked(const struct session *session)
{
    return session->limits.class != CLASS_CRITICAL && !is_away(session) &&
           !program_suspend_is_wanted(session) && !suspend_arrival_is_awaited(session);
}

static bool has_memory(const struct session *session)
{
    uint64_t used, peak;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        memory_usage(session, i, &used, &peak);
        if (used)
            return true;
    }
    return false;
}

static void ask_locked(struct session *session, struct rest_eviction *rest)
{
    rest->was_asked = true;
    if (!has_memory(session))
        return;
    rest->is_under_way = true;
    suspend_order_evict_locked(session, NULL);
}

/* An order that has not been taken back: the thread looks at it before its next command. */
static void follow_locked(struct session *session, struct rest_eviction *rest)
{
    if (is_away(session) || !program_suspend_is_wanted(session))
        rest->is_under_way = false;
    else
        suspend_order_repeat_locked(session);
}

static void end_rest_locked(struct session *session, struct rest_eviction *rest)
{
    if (rest->is_under_way)
        suspend_order_withdraw_locked(session);
    rest->since = 0;
    rest->was_asked = false;
    rest->is_under_way = false;
}

static void watch_locked(struct session *session, uint64_t seconds)
{
    struct rest_eviction *rest = &session->swapping->rest;
    uint64_t now = clock_ns();

    if (has_worked(session, rest))
        end_rest_locked(session, rest);
    else if (!rest->since)
        rest->since = now;
    else if (rest->is_under_way)
        follow_locked(session, rest);
    else if (seconds && !rest->was_asked && now - rest->since >= seconds * NS_PER_SEC &&
             may_be_asked(session))
        ask_locked(session, rest);
}

void rest_eviction_watch(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link)
        if (session->phase == SESSION_SERVING)
            watch_locked(session, session->limits.evict_after);
}
