/* SPDX-License-Identifier: Apache-2.0 */
/* See heartbeat.h. */
#include "heartbeat.h"

#include <signal.h>
#include <string.h>

#include "clock.h"
#include "connection.h"
#include "journal.h"
#include "lane.h"
#include "process_stat.h"
#include "server_process.h"
#include "spare_lane.h"
#include "text.h"
#include "timeslice.h"

/* Servers send two a second. */
#define SILENCE_MS 3000u
#define STALL_MS 2000u

uint32_t heartbeat_silent_ms(const struct server_process *server)
{
    const struct heartbeat *heartbeat = &server->heartbeat;
    uint64_t ms = heartbeat->timer ? (clock_ns() - heartbeat->heard) / NS_PER_MS : 0;

    return ms < SILENCE_MS ? 0 : (uint32_t)ms;
}

static const char *describe_state(char state)
{
    switch (state) {
    case 'T':
        return "is stopped";
    case 't':
        return "is being debugged";
    case 'D':
        return "waits inside the operating system";
    case 0:
        return "cannot be seen";
    default:
        return "runs";
    }
}

bool heartbeat_process_is_stopped(const struct server_process *server)
{
    char state = process_stat_read(server->pid).state;

    return state == 'T' || state == 't';
}

bool heartbeat_is_stopped(const struct server_process *server)
{
    return heartbeat_process_is_stopped(server) ||
           (server->heartbeat.has_come && heartbeat_silent_ms(server));
}

/* ---- what is logged ---- */

static void log_silence(struct server_process *server, uint32_t ms)
{
    struct heartbeat *heartbeat = &server->heartbeat;

    if (ms && !heartbeat->silence_logged)
        journal("Server %d has sent no heartbeat for %.1f s; its process %s", (int)server->pid,
                ms / 1000.0, describe_state(process_stat_read(server->pid).state));
    if (!ms && heartbeat->silence_logged)
        journal("Server %d sends heartbeats again", (int)server->pid);
    heartbeat->silence_logged = ms != 0;
}

static void log_stall(struct server_process *server)
{
    struct heartbeat *heartbeat = &server->heartbeat;
    bool stalled = heartbeat->waited_ms >= STALL_MS;

    if (stalled && !heartbeat->stall_logged)
        journal("Server %d: %s", (int)server->pid, heartbeat->text);
    if (!stalled && heartbeat->stall_logged)
        journal("Server %d: no client waits for another any more", (int)server->pid);
    heartbeat->stall_logged = stalled;
}

/* ---- replacing it ---- */

static void replace(struct server_process *server, const char *why)
{
    journal("Server %d %s for %u s, the daemon's stall timeout; killing it, so that another takes "
            "its place",
            (int)server->pid, why, server->daemon->stall_timeout_s);
    heartbeat_end(server);
    server_process_signal(server, SIGKILL);
    server_process_lost(server);
}

static void check(struct server_process *server)
{
    uint64_t timeout_ms = server->daemon->stall_timeout_s * 1000ull;
    uint32_t silent_ms = heartbeat_silent_ms(server);

    log_silence(server, silent_ms);
    if (!timeout_ms || server->state != SERVER_ACTIVE)
        return;
    if (silent_ms >= timeout_ms && process_stat_read(server->pid).state != 't')
        replace(server, "has sent no heartbeat");
    else if (server->heartbeat.waited_ms >= timeout_ms)
        replace(server, "has kept clients waiting");
}

/* The daemon itself may have been stopped, with messages that it has not read. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;
    uid_t before = journal_account(server->owner);

    connection_drain(&server->connection);
    if (server->connection.fd >= 0)
        check(server);
    lane_check(server);
    journal_account(before);
}

/* ---- events ---- */

void heartbeat_begin(struct server_process *server)
{
    const struct timeval period = {.tv_sec = 1};
    struct heartbeat *heartbeat = &server->heartbeat;

    heartbeat->heard = clock_ns();
    heartbeat->timer = event_new(server->daemon->base, -1, EV_PERSIST, on_timer, server);
    if (heartbeat->timer)
        event_add(heartbeat->timer, &period);
}

void heartbeat_end(struct server_process *server)
{
    if (server->heartbeat.timer)
        event_free(server->heartbeat.timer);
    server->heartbeat.timer = NULL;
}

void heartbeat_received(struct server_process *server, const struct server_heartbeat *message)
{
    struct heartbeat *heartbeat = &server->heartbeat;

    heartbeat->heard = clock_ns();
    heartbeat->has_long_work = message->long_work != 0;
    if (!heartbeat->has_long_work)
        heartbeat->long_work_began = 0;
    else if (!heartbeat->long_work_began)
        heartbeat->long_work_began = heartbeat->heard;
    if (heartbeat->has_long_work || !heartbeat->has_come)
        heartbeat->long_work_seen = heartbeat->heard;
    heartbeat->has_come = true;
    heartbeat->waited_ms = message->waiting ? message->waited_ms : 0;
    memcpy(heartbeat->text, message->text, sizeof(heartbeat->text));
    heartbeat->text[sizeof(heartbeat->text) - 1] = '\0';
    log_stall(server);
    timeslice_note_load(server, (struct timeslice_load){message->kernels_percent, message->held});
    spare_lane_return(server);
}
