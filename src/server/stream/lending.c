/* SPDX-License-Identifier: Apache-2.0 */
/* See lending.h. */
#include "lending.h"

#include <string.h>

#include "channel_server.h"
#include "cleanup.h"
#include "driver_stream.h"
#include "sm_share.h"
#include "stream_state.h"
#include "suspend.h"

static struct lending *lending_of(const struct session *session)
{
    return &session->streams->lending;
}

static void tell_client(struct session *session)
{
    atomic_fetch_or(&session->limits.changed, CHANGED_LENDING);
}

static bool sets_meet(const struct group_set *a, const struct group_set *b)
{
    uint64_t common = 0;

    for (unsigned i = 0; i < SM_GROUPS_MAX / 64; i++)
        common |= a->words[i] & b->words[i];
    return common != 0;
}

static bool is_empty(const struct group_set *set)
{
    return !sets_meet(set, set);
}

/* ---- what a client has, and what it may borrow ---- */

static struct group_set without(struct group_set set, const struct group_set *other)
{
    for (unsigned i = 0; i < SM_GROUPS_MAX / 64; i++)
        set.words[i] &= ~other->words[i];
    return set;
}

static void list_groups(const struct session *session, struct lending *lending)
{
    lending->borrows = false;
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        const struct sm_share *share = sm_share_own(session, i);

        lending->device[i].own = partition_group_set(share->partition);
        lending->device[i].more = (struct group_set){0};
        if (!share->may_borrow)
            continue;
        lending->device[i].more =
            without(partition_group_set(share->lent), &lending->device[i].own);
        lending->borrows = true;
    }
}

static void count_borrower(const struct session *session, int change)
{
    atomic_fetch_add(&session->server->streams->borrowers, (unsigned)change);
}

/* ---- who may borrow ---- */

static bool takes_from(const struct session *borrower, const struct session *owner, unsigned device)
{
    return borrower != owner && sets_meet(&lending_of(borrower)->device[device].more,
                                          &lending_of(owner)->device[device].own);
}

/* The owner works: no client borrows from it any more. */
static void recall_locked(struct session *owner)
{
    struct server *server = owner->server;

    list_for_each (struct session, session, &server->sessions, link) {
        struct lending *lending = lending_of(session);
        uint64_t before = lending->wanted;

        for (unsigned i = 0; before && i < server->devices.count; i++)
            if (takes_from(session, owner, i))
                lending->wanted &= ~(1ull << i);
        if (lending->wanted != before)
            tell_client(session);
    }
}

static bool may_borrow_locked(const struct session *borrower, unsigned device)
{
    list_for_each (struct session, session, &borrower->server->sessions, link) {
        if (!lending_of(session)->rests && takes_from(borrower, session, device))
            return false;
    }
    return true;
}

static void lend_locked(struct session *session)
{
    struct lending *lending = lending_of(session);
    uint64_t before = lending->wanted;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        if (!is_empty(&lending->device[i].more) && may_borrow_locked(session, i))
            lending->wanted |= 1ull << i;
    if (lending->wanted != before)
        tell_client(session);
}

/* ---- who rests ---- */

/* A client that attaches will soon have work. */
static bool has_worked(const struct session *session, struct lending *lending)
{
    uint32_t taken = lending->taken;

    return session->phase != SESSION_SERVING ||
           channel_server_queued(session->channel, &lending->taken) || taken != lending->taken ||
           !session_is_at_rest(session) || fence_any_pending(session);
}

/* The session's next command will find that it has rested. Until then it need not be looked at. */
static void watch_session_locked(struct session *session)
{
    struct lending *lending = lending_of(session);

    if (lending->rests || has_worked(session, lending))
        return;
    lending->rests = true;
    tell_client(session);
}

void lending_watch(struct server *server)
{
    if (!atomic_load(&server->streams->borrowers))
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    list_for_each (struct session, session, &server->sessions, link)
        watch_session_locked(session);
    list_for_each (struct session, session, &server->sessions, link)
        if (lending_of(session)->borrows)
            lend_locked(session);
}

/* ---- the session's thread ---- */

void lending_begin(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);
    struct lending *lending = lending_of(session);

    count_borrower(session, -(int)lending->borrows);
    list_groups(session, lending);
    count_borrower(session, lending->borrows);
    lending->wanted = 0;
    lending->rests = false;
    recall_locked(session);
}

/* With no groups, a client neither lends nor borrows. */
void lending_end(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);
    struct lending *lending = lending_of(session);

    count_borrower(session, -(int)lending->borrows);
    memset(lending, 0, sizeof(*lending));
}

/* Returns what is wanted of this session. */
static uint64_t work_again(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);
    struct lending *lending = lending_of(session);

    if (lending->rests)
        recall_locked(session);
    lending->rests = false;
    return lending->wanted;
}

void lending_follow(struct session *session)
{
    uint64_t wanted = work_again(session);

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        bool borrows = wanted >> i & 1;

        if (sm_share_own(session, i)->borrows != borrows)
            streams_change_place(session, &session->server->devices.device[i], borrows);
    }
}
