/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the main thread changes the list of sessions, so it reads the list without the lock. A
 * thread that waits for the driver may hold the lock.
 */
#include "stall.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "accounting.h"
#include "channel_server.h"
#include "clock.h"
#include "context_hold.h"
#include "daemon_report.h"
#include "early_report.h"
#include "fd.h"
#include "fence.h"
#include "launch_record.h"
#include "limits_text.h"
#include "log.h"
#include "long_work_watch.h"
#include "server_life.h"
#include "server_trace.h"
#include "session_life.h"
#include "suspend.h"
#include "text.h"

#define PERIOD_NS (500 * NS_PER_MS)

/* A call that blocks others for this time is logged. */
#define STALL_LOGGED_MS 2000u

/* No command has this position: the thread is in a stage of its client's life. */
#define NO_POSITION 1u

/* The call that blocks others, as far as the server can tell from outside the driver. */
struct stall {
    const struct session *offender; /* NULL = no client waits */
    unsigned waiting;               /* other clients that are in a call, too */
    const char *waits_in;           /* the call of the one that has waited longest ... */
    uint64_t waited_ms;             /* ... and for how long */
};

/* ---- each client ---- */

/* NULL = in no call that may take long. The wait for kernels at the end of a client is no call. */
static const char *current_call(const struct session *session, uint32_t *ret_position)
{
    const char *name = activity_name(&session->activity);

    *ret_position = NO_POSITION;
    if (session->phase == SESSION_DONE)
        return NULL;
    if (session->phase == SESSION_ATTACHING || session->stop || session_is_at_rest(session))
        return name;
    uint32_t op = channel_server_last_op(session->channel, ret_position);
    return name ? name : wire_op_name(op);
}

static void sample_session(struct session *session, uint64_t now)
{
    struct session_call *last = &session->life->call;
    uint32_t position;
    const char *name = current_call(session, &position);

    if (!name || !last->name || position != last->position)
        last->since = now;
    last->name = name;
    last->position = position;
}

const char *stall_call(const struct session *session, uint64_t *ret_ms)
{
    const struct session_call *call = &session->life->call;

    *ret_ms = call->name ? (clock_ns() - call->since) / NS_PER_MS : 0;
    return *ret_ms ? call->name : NULL;
}

/* ---- all of them ---- */

static bool makes_all_wait(const struct session *session)
{
    return session->activity.call != NULL;
}

/* Whether the first of two clients in a call is the likelier offender. That is the client in an
 * exclusive call, else the one in the longest call. */
static bool is_likelier(const struct session *session, const struct session *other)
{
    if (makes_all_wait(session) != makes_all_wait(other))
        return makes_all_wait(session);
    return session->life->call.since < other->life->call.since;
}

static const struct session *find_offender(const struct server *server)
{
    const struct session *offender = NULL;
    uint64_t ms;

    list_for_each (struct session, session, &server->sessions, link) {
        if (stall_call(session, &ms) && (!offender || is_likelier(session, offender)))
            offender = session;
    }
    return offender;
}

static struct stall find_stall(const struct server *server)
{
    struct stall stall = {.offender = find_offender(server)};
    const char *call;
    uint64_t ms;

    list_for_each (struct session, session, &server->sessions, link) {
        if (session == stall.offender || !(call = stall_call(session, &ms)))
            continue;
        stall.waiting++;
        if (ms <= stall.waited_ms)
            continue;
        stall.waited_ms = ms;
        stall.waits_in = call;
    }
    if (!stall.waiting)
        stall.offender = NULL;
    return stall;
}

/* ---- in words ---- */

/* The session whose kernel is probably running: preferably one that is in no call. */
static struct session *find_kernel_owner(const struct server *server)
{
    struct session *owner = NULL;
    uint64_t ms;

    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_SERVING && launch_count(session) &&
            fence_any_pending(session) && (!owner || !stall_call(session, &ms)))
            owner = session;
    }
    return owner;
}

static void describe_kernel(const struct server *server, char *ret_text, size_t size)
{
    struct session *owner = find_kernel_owner(server);
    char kernel[128], who[IDENTITY_TEXT_MAX];

    *ret_text = '\0';
    if (!owner)
        return;
    launch_last_kernel(owner, kernel, sizeof(kernel));
    identity_describe(&owner->identity, who);
    text_format(ret_text, size,
                "; the kernel that was launched last is %s of " CLIENT_FORMAT " (%.120s)", kernel,
                CLIENT_ARGS(owner), who);
}

static void describe_stall(const struct server *server, const struct stall *stall, char *ret_text,
                           size_t size)
{
    char kernel[400], who[IDENTITY_TEXT_MAX];
    uint64_t ms;
    const char *call = stall_call(stall->offender, &ms);

    describe_kernel(server, kernel, sizeof(kernel));
    identity_describe(&stall->offender->identity, who);
    text_format(ret_text, size,
                "client " CLIENT_FORMAT " (%.160s) has been in %s for %.1f s, and %u other%s "
                "meanwhile, one in %s for %.1f s%s",
                CLIENT_ARGS(stall->offender), who, call, (double)ms / 1000, stall->waiting,
                stall->waiting == 1 ? " is in a call" : "s are in calls", stall->waits_in,
                (double)stall->waited_ms / 1000, kernel);
}

static void log_change(struct server *server, const struct stall *stall, const char *text)
{
    bool stalled = stall->waited_ms >= STALL_LOGGED_MS;

    if (stalled != server->life->stall_logged)
        log_with(stalled && stall->offender ? LOG_EVENT(stall->offender->identity.pid, 0) : NULL,
                 stalled ? "Clients wait for another: %s" : "No client waits for another any more",
                 text);
    server->life->stall_logged = stalled;
}

/* ---- the timer ---- */

/* Charges each client that waits in a call while the offender is in its own, for the time since the
 * last heartbeat; NULL = no offender. */
static void account(struct server *server, const struct session *offender, uint64_t passed_ms)
{
    uint64_t ms, theirs;
    const char *call = offender ? stall_call(offender, &ms) : NULL;

    list_for_each (struct session, session, &server->sessions, link) {
        struct session_call *own = &session->life->call;
        bool stalled = session != offender && call && stall_call(session, &theirs);
        if (stalled)
            accounting_stalled(session, offender, call, passed_ms, !own->stalled);
        own->stalled = stalled;
    }
}

static void beat(struct server *server)
{
    struct server_heartbeat heartbeat;
    uint64_t now = clock_ns(), passed_ns = now - server->life->beat_at;

    server->life->beat_at = now;
    list_for_each (struct session, session, &server->sessions, link)
        sample_session(session, now);
    struct stall stall = find_stall(server);
    server_message_init(&heartbeat, SERVER_HEARTBEAT, 0);
    heartbeat.waiting = stall.waiting;
    heartbeat.waited_ms = (uint32_t)stall.waited_ms;
    heartbeat.kernels_percent = accounting_kernels_percent(server);
    heartbeat.long_work = long_work_tell(server);
    heartbeat.held = context_hold_tell_demand(server);
    account(server, stall.offender, passed_ns / NS_PER_MS);
    if (stall.offender)
        describe_stall(server, &stall, heartbeat.text, sizeof(heartbeat.text));
    log_change(server, &stall, heartbeat.text);
    daemon_report_heartbeat(server, &heartbeat);
    early_report_beat(server);
    server_trace_tick(server);
}

static void on_timer(void *context, int timer_fd)
{
    uint64_t count;

    if (read(timer_fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
        beat(context);
}

static int set_timer(const struct server *server, long first_ns)
{
    const struct itimerspec times = {.it_interval.tv_nsec = PERIOD_NS,
                                     .it_value.tv_nsec = first_ns};

    return timerfd_settime(server->life->beat_timer, 0, &times, NULL);
}

int stall_watch_start(struct server *server)
{
    int *timer_fd = &server->life->beat_timer;

    server->life->beat_at = clock_ns();
    *timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (*timer_fd >= 0 && !set_timer(server, PERIOD_NS) &&
        loop_watch_readable(server->life->loop, *timer_fd, on_timer, server))
        return 0;
    fd_close(timer_fd);
    return -ENOMEM;
}

void stall_watch_hurry(const struct server *server)
{
    set_timer(server, 1);
}
