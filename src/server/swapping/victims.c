/* SPDX-License-Identifier: Apache-2.0 */
/* See victims.h. */
#include "victims.h"

#include "client_class.h"
#include "clock.h"
#include "quota.h"
#include "session_life.h"
#include "suspend_arrival.h"
#include "suspend_order.h"
#include "swap.h"
#include "swapping.h"

static struct server_eviction *eviction_of(const struct server *server)
{
    return &server->swapping->eviction;
}

static uint64_t bytes_on(const struct session *session, unsigned device)
{
    uint64_t used, peak;

    memory_usage(session, device, &used, &peak);
    return used;
}

static uint64_t bytes_of(const struct session *session)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        bytes += bytes_on(session, i);
    return bytes;
}

static bool is_away(const struct session *session)
{
    return session->swapping->order.out;
}

static bool is_under_orders(const struct session *session)
{
    return is_away(session) ? program_suspend_leaves_more(session)
                            : program_suspend_is_wanted(session);
}

/* The memory of a client that is about to be checkpointed or locked stays. */
static bool is_about_to_leave(const struct session *session)
{
    int kind = session->swapping->order.kind;

    return is_under_orders(session) &&
           (is_away(session) || kind == SERVER_SUSPEND_LEAVE || kind == SERVER_SUSPEND_DETACH);
}

/* Of a client that stands still, only what it has on the device counts, not variables. */
static uint64_t bytes_to_leave(const struct session *session, unsigned device)
{
    if (!is_away(session))
        return bytes_on(session, device);
    return program_suspend_has_resident_memory(session)
               ? session->swapping->eviction.resident[device]
               : 0;
}

/* At some time. */
static bool could_leave(const struct session *session, const struct room_wait *wait, uint64_t now)
{
    const struct session_eviction *eviction = &session->swapping->eviction;

    return session != wait->session && session->phase == SESSION_SERVING && !session->stop &&
           eviction_takes_part(session) && session->limits.class != CLASS_CRITICAL &&
           now >= eviction->obstacle_until;
}

/* The thread of a client that waits for memory runs no command. */
static bool is_idle(const struct session *session)
{
    return session->swapping->eviction.in_line || session->swapping->eviction.idle_since;
}

uint64_t victims_quantum(const struct session *session, uint64_t bytes)
{
    return memory_stay_quantum(&eviction_of(session->server)->pace,
                               &session->swapping->eviction.stay, bytes, is_idle(session),
                               quota(QUOTA_STAY_SECONDS) * NS_PER_SEC);
}

/* A client that waits for memory gains nothing by its quantum, and a critical one waits for none.
 */
static bool may_leave_now(const struct session *session, const struct room_wait *wait, uint64_t now)
{
    const struct session_eviction *eviction = &session->swapping->eviction;
    unsigned class = wait->session->limits.class;

    if (suspend_arrival_is_awaited(session))
        return false;
    if (class == CLASS_BATCH && session->limits.class != CLASS_BATCH && !is_idle(session) &&
        !is_away(session))
        return false;
    return class == CLASS_CRITICAL || eviction->in_line || is_away(session) ||
           now - eviction->stay.since >= victims_quantum(session, bytes_of(session));
}

static struct resident resident_of(const struct session *session, unsigned device, uint64_t now)
{
    const struct session_eviction *eviction = &session->swapping->eviction;
    uint64_t since = eviction->idle_since ? eviction->idle_since : eviction->stay.since;

    return (struct resident){.is_partly_away = is_away(session),
                             .class = session->limits.class,
                             .is_idle = is_idle(session),
                             .bytes = bytes_to_leave(session, device),
                             .ns = now - since};
}

static struct session *choose_locked(const struct room_wait *wait, unsigned device, uint64_t need,
                                     uint64_t now)
{
    struct session *first = NULL;
    struct resident leaves = {0};

    list_for_each (struct session, session, &wait->session->server->sessions, link) {
        if (!could_leave(session, wait, now) || !bytes_to_leave(session, device) ||
            is_under_orders(session) || !may_leave_now(session, wait, now))
            continue;
        struct resident resident = resident_of(session, device, now);
        if (first && !resident_leaves_before(&resident, &leaves, need))
            continue;
        first = session;
        leaves = resident;
    }
    return first;
}

/* Its memory is about to be free, unless a kernel of it never ends. */
static bool is_ending(const struct session *session)
{
    return session->stop && !session->life->abandoned;
}

/* What an order says, and no more than there is. */
static uint64_t bytes_ordered(const struct session *session, unsigned device)
{
    uint64_t bytes = bytes_to_leave(session, device);
    const struct session_eviction *eviction = &session->swapping->eviction;

    return eviction->ordered_for && eviction->ordered < bytes ? eviction->ordered : bytes;
}

/* What is on its way back is not counted yet as what could leave again. */
static uint64_t bytes_at_most(const struct session *session, unsigned device)
{
    return session->swapping->eviction.in_line ? bytes_on(session, device)
                                               : bytes_to_leave(session, device);
}

/* The bytes of clients that are about to leave, or of all that could. */
static uint64_t count_locked(const struct room_wait *wait, unsigned device, uint64_t now,
                             bool ordered)
{
    uint64_t bytes = 0;

    list_for_each (struct session, session, &wait->session->server->sessions, link) {
        if (is_ending(session))
            bytes += bytes_on(session, device);
        else if (could_leave(session, wait, now) && (!ordered || is_about_to_leave(session)))
            bytes += ordered ? bytes_ordered(session, device) : bytes_at_most(session, device);
    }
    return bytes;
}

void victims_repeat_locked(const struct room_wait *wait)
{
    list_for_each (struct session, session, &wait->session->server->sessions, link)
        if (session->swapping->eviction.ordered_for == wait->session->id)
            suspend_order_repeat_locked(session);
}

static void evict_for(const struct room_wait *wait, struct session *session,
                      const struct swap_part *part)
{
    struct session_eviction *eviction = &session->swapping->eviction;

    eviction->ordered_for = wait->session->id;
    eviction->ordered = wait->returns ? part->bytes : UINT64_MAX;
    suspend_order_evict_locked(session, wait->returns ? part : NULL);
}

bool victims_order_locked(const struct room_wait *wait, unsigned device, uint64_t missing)
{
    uint64_t now = clock_ns(), leaving = count_locked(wait, device, now, true);

    while (leaving < missing) {
        const struct swap_part part = {device, missing - leaving};
        struct session *session = choose_locked(wait, device, part.bytes, now);
        if (!session)
            return false;
        evict_for(wait, session, &part);
        leaving += bytes_ordered(session, device);
    }
    return true;
}

void victims_withdraw_locked(const struct room_wait *wait)
{
    list_for_each (struct session, session, &wait->session->server->sessions, link) {
        if (session->swapping->eviction.ordered_for != wait->session->id)
            continue;
        session->swapping->eviction.ordered_for = 0;
        suspend_order_withdraw_locked(session);
    }
}

uint64_t victims_could_give_locked(const struct room_wait *wait, unsigned device)
{
    return count_locked(wait, device, clock_ns(), false);
}
