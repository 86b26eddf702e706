/* SPDX-License-Identifier: Apache-2.0 */
/* See session_leave.h. */
#include "session_leave.h"

#include <time.h>

#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "daemon_report.h"
#include "device_change.h"
#include "fd.h"
#include "leave_variables.h"
#include "log.h"
#include "move_obstacle.h"
#include "server_life.h"
#include "session_idle.h"
#include "session_life.h"
#include "suspend.h"

#define PAUSE_NS (200 * NS_PER_US)

/* The costs that a gentle move may have. The client waits so long for its work, less than it would
 * wait (client_recovery.c); another server may have to lock so much memory. An H100 takes 0.8 s for
 * a GiB. */
#define GENTLE_WAIT_NS (800 * NS_PER_MS)
#define CHEAP_PINNED_MAX (256ull << 20)

/* More than an honest client makes at once. */
#define LEAVE_CHANGES_MAX 8u

/* A client library asks no more often, and each wish is work of the daemon's. */
#define WISH_PERIOD_NS (20 * NS_PER_MS)
#define WISH_BURST 16u

/* ---- the main thread ---- */

static uint32_t refusal(enum move_obstacle obstacle)
{
    return LEAVE_REFUSED | (uint32_t)obstacle << LEAVE_OBSTACLE_SHIFT;
}

static bool is_refusal(uint32_t word)
{
    return (word & ((1u << LEAVE_OBSTACLE_SHIFT) - 1)) == LEAVE_REFUSED;
}

static bool change_from_rest(struct session *session, uint32_t to)
{
    return channel_server_leave_change(session->channel, LEAVE_NONE, to) ||
           channel_server_leave_change(session->channel, LEAVE_PENDING, to);
}

static bool is_granted(uint32_t word)
{
    return word == LEAVE_GRANTED || word == LEAVE_COPIES;
}

bool session_leave_is_granted(const struct session *session)
{
    return session->life->leave_ordered && is_granted(channel_server_leave(session->channel));
}

/* A client that stands still hears of no refusal. */
static void refuse_dear(struct session *session, uint32_t request)
{
    if (!change_from_rest(session, refusal(OBSTACLE_PINNED))) {
        daemon_report_client_stays(session->server, request, OBSTACLE_PINNED);
        return;
    }
    session->life->leave_request = request;
    session->life->leave_ordered = true;
}

void session_leave_order(struct session *session, const struct server_move_client *order)
{
    struct session_life *life = session->life;

    if (life->leave_withdrawn)
        session_leave_withdraw(session);
    /* By an order that came before, which is answered when the client has left or stays. */
    if (session_leave_is_granted(session)) {
        daemon_report_client_stays(session->server, order->header.request, OBSTACLE_MOVING);
        return;
    }
    if (order->cheap && quota_held(session, QUOTA_HOST_MEMORY) > CHEAP_PINNED_MAX) {
        refuse_dear(session, order->header.request);
        return;
    }
    life->leave_request = order->header.request;
    life->leaves_gently = order->gentle != 0;
    life->leave_device = order->device;
    life->leave_ordered = true;
    change_from_rest(session, LEAVE_WANTED);
}

/* The client goes on here, unless it has the grant: then false. Its own changes of the word are
 * few. A refusal of this order would answer the next one. */
static bool take_back(struct session *session)
{
    for (unsigned i = 0; i < LEAVE_CHANGES_MAX; i++) {
        uint32_t word = channel_server_leave(session->channel);

        if (is_granted(word))
            return false;
        if (word == LEAVE_NONE || word == LEAVE_SETTLED ||
            channel_server_leave_change(session->channel, word, LEAVE_NONE))
            return true;
    }
    return true;
}

/* The daemon keeps what it knows of an order until that is answered. */
void session_leave_withdraw(struct session *session)
{
    struct session_life *life = session->life;
    bool is_ordered = atomic_exchange(&life->leave_ordered, false);

    bool is_over = take_back(session) || !is_ordered;

    life->leave_withdrawn = !is_over;
    life->leave_ordered = !is_over;
    if (is_over && is_ordered)
        daemon_report_client_stays(session->server, life->leave_request, OBSTACLE_MOVING);
}

bool session_leave_take_wish(struct session *session, uint32_t *ret_server)
{
    bool is_wished = atomic_exchange(&session->life->leave_wished, false);

    *ret_server = session->life->leave_server;
    return is_wished;
}

bool session_leave_answer(struct session *session, uint32_t *ret_request, uint32_t *ret_obstacle)
{
    struct session_life *life = session->life;

    if (life->leave_withdrawn)
        session_leave_withdraw(session);
    uint32_t word = life->leave_ordered ? channel_server_leave(session->channel) : LEAVE_NONE;
    if (!is_refusal(word))
        return false;
    life->leave_ordered = false;
    *ret_request = life->leave_request;
    *ret_obstacle = word >> LEAVE_OBSTACLE_SHIFT;
    if (*ret_obstacle == OBSTACLE_NONE || *ret_obstacle >= OBSTACLE_COUNT)
        *ret_obstacle = OBSTACLE_CALL;
    session_log(session, " stays in this lane: %s", move_obstacle_text(*ret_obstacle));
    channel_server_leave_change(session->channel, word, LEAVE_NONE);
    return true;
}

/* ---- the watchdog ---- */

/* Whether the main thread has something to do. A client that was on its way when its order was
 * withdrawn may stay after all. */
static bool watch_session(struct session *session)
{
    uint32_t word = channel_server_leave(session->channel);
    bool is_withdrawn = session->life->leave_withdrawn;

    if (word == LEAVE_ASKED && !is_withdrawn) {
        atomic_fetch_or(&session->limits.changed, CHANGED_LEAVE);
        channel_server_kick(session->channel);
    }
    return is_refusal(word) || (is_withdrawn && !is_granted(word));
}

void session_leave_watch(struct server *server)
{
    bool has_news = false;

    {
        _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

        list_for_each (struct session, session, &server->sessions, link)
            if (session->phase == SESSION_SERVING && session->life->leave_ordered)
                has_news |= watch_session(session);
    }
    if (has_news)
        server_notify(server);
}

/* ---- the session thread ---- */

static bool may_wish(struct session_life *life)
{
    uint64_t now = clock_ns(), from = life->wished_until > now ? life->wished_until : now;

    if (from - now > (WISH_BURST - 1) * WISH_PERIOD_NS)
        return false;
    life->wished_until = from + WISH_PERIOD_NS;
    return true;
}

bool session_leave_wish(struct session *session, uint32_t server)
{
    if (session->server->life->alone || !may_wish(session->life) ||
        !channel_server_leave_change(session->channel, LEAVE_NONE, LEAVE_PENDING))
        return false;
    session->life->leave_server = server;
    atomic_store(&session->life->leave_wished, true);
    server_notify(session->server);
    return true;
}

static bool client_asks(const struct session *session)
{
    return channel_server_leave(session->channel) == LEAVE_ASKED;
}

static void finish_work(struct session *session)
{
    const struct idle_wait wait = {
        .deadline = session->life->leaves_gently ? clock_ns() + GENTLE_WAIT_NS : 0,
        .is_wanted = client_asks,
        .collects_output = true,
        .rests = true};

    if (!session_await_idle(session, &wait) && wait.deadline && !session->stop)
        channel_server_leave_change(session->channel, LEAVE_ASKED, refusal(OBSTACLE_WORK));
}

/* The client has moved then, or goes on here. */
static void rest_while_granted(struct session *session)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    session_set_at_rest(session, true);
    while (!session->stop && channel_server_leave(session->channel) == LEAVE_GRANTED)
        nanosleep(&pause, NULL);
    session_set_at_rest(session, false);
}

static void grant_with(struct session *session, uint32_t state, const struct leave_parcel *parcel)
{
    struct session_life *life = session->life;

    if (session->stop || !channel_server_leave_change(session->channel, state, LEAVE_GRANTED))
        return;
    life->leaves = true;
    session_log(session, " moves to another %s", parcel->device_change ? "device" : "lane");
    leave_parcel_send(session, parcel);
    rest_while_granted(session);
    life->leaves = session->stop;
}

/* The client waits for the copies, however long they take. */
static void grant_device(struct session *session, uint32_t device, struct leave_parcel *parcel)
{
    struct device_change change;
    enum move_obstacle obstacle;

    if (!channel_server_leave_change(session->channel, LEAVE_ASKED, LEAVE_COPIES))
        return;
    obstacle = device_change_begin(session, device, &change);
    if (obstacle) {
        channel_server_leave_change(session->channel, LEAVE_COPIES, refusal(obstacle));
        return;
    }
    parcel->device_change = DEVICE_CHANGE(change.from->ordinal, change.to->ordinal);
    grant_with(session, LEAVE_COPIES, parcel);
    if (!session->stop)
        device_change_undo(session, &change);
}

static void grant(struct session *session)
{
    struct leave_parcel parcel = {.fd = -1};
    enum move_obstacle obstacle = leave_variables_save(session, &parcel);
    uint32_t device = session->life->leave_device;

    if (obstacle)
        channel_server_leave_change(session->channel, LEAVE_ASKED, refusal(obstacle));
    else if (device)
        grant_device(session, device - 1, &parcel);
    else
        grant_with(session, LEAVE_ASKED, &parcel);
    fd_close(&parcel.fd);
}

/* The main thread may take or withdraw an order at the same time, so that is read after each change
 * of the word. */
void session_leave_unsettle(struct session *session)
{
    channel_server_leave_change(session->channel, LEAVE_SETTLED, LEAVE_NONE);
    if (!session->life->leave_ordered)
        return;
    channel_server_leave_change(session->channel, LEAVE_NONE, LEAVE_WANTED);
    if (!session->life->leave_ordered)
        take_back(session);
}

void session_leave_follow(struct session *session)
{
    struct session_life *life = session->life;

    if (!life->leave_ordered)
        return;
    finish_work(session);
    channel_server_make_exact(session->channel);
    if (!session->stop && client_asks(session))
        grant(session);
}
