/* SPDX-License-Identifier: Apache-2.0 */
/* See server_process.h. */
#include "server_process.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_record.h"
#include "clock.h"
#include "fd.h"
#include "funnel_errors.h"
#include "journal.h"
#include "lane.h"
#include "lane_move.h"
#include "lane_name.h"
#include "pending_request.h"
#include "process_stat.h"
#include "replacement.h"
#include "server_handlers.h"
#include "service.h"
#include "sock.h"
#include "standby.h"
#include "takeover.h"
#include "text.h"
#include "timeslice.h"
#include "user_rate.h"

#define STOP_TIMEOUT_S 10   /* from the order to leave at once, or the end of its socket */
#define STOPPED_TIMEOUT_S 1 /* the same of a process that does not run */

/* ---- lookup ---- */

struct server_process *server_process_find(const struct daemon *daemon, const char *name)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->role == SERVER_SERVING && !strcmp(server->name, name))
            return server;
    return NULL;
}

struct server_process *server_process_find_ending(const struct daemon *daemon, const char *name)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->role == SERVER_REPLACED && !strcmp(server->name, name))
            return server;
    return NULL;
}

static struct server_process *find_process(const struct daemon *daemon, pid_t pid)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->pid == pid)
            return server;
    return NULL;
}

struct server_process *server_process_by_pid(const struct daemon *daemon, pid_t pid)
{
    struct server_process *server = find_process(daemon, pid);

    return server && server->role == SERVER_SERVING ? server : NULL;
}

bool server_process_has_started(const struct server_process *server)
{
    return server->state != SERVER_INITIALIZING || server->ready.device_count > 0;
}

const char *server_process_state_name(const struct server_process *server)
{
    switch (server->state) {
    case SERVER_INITIALIZING:
        return "INITIALIZING";
    case SERVER_ACTIVE:
        return "ACTIVE";
    case SERVER_FAULTED:
        return "FAULT";
    }
    return "FAULT";
}

/* ---- start ---- */

void server_process_signal(const struct server_process *server, int number)
{
    if (server->process_fd >= 0)
        syscall(SYS_pidfd_send_signal, server->process_fd, number, NULL, 0);
    else
        kill(server->pid, number);
}

void server_process_set_deadline(struct server_process *server, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    evtimer_add(server->deadline, &timeout);
}

void server_process_set_stop_deadline(struct server_process *server)
{
    server_process_set_deadline(server, STOP_TIMEOUT_S);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;

    /* One that was stopped when it was taken over answers when it goes on. */
    if (server->resuming && heartbeat_process_is_stopped(server)) {
        server_process_set_deadline(server, RESUME_TIMEOUT_S);
        return;
    }
    journal("Server %d did not %s in time; killing it", (int)server->pid,
            server->state == SERVER_INITIALIZING && !server->stopping ? "start" : "end");
    if (!server->failure) {
        server->failure = FUNNEL_ERROR_MPS_SERVER_NOT_READY;
        text_copy(server->failure_text, sizeof(server->failure_text),
                  "The server did not become ready in time; see server.log");
    }
    server->daemon->forced |= server->daemon->quitting;
    server_process_signal(server, SIGKILL);
}

void server_process_free(struct server_process *server)
{
    list_remove(&server->link);
    pending_requests_end(server);
    client_records_close(server);
    server_file_remove(server);
    server_log_close(server);
    connection_close(&server->connection);
    heartbeat_end(server);
    if (server->deadline)
        event_free(server->deadline);
    if (server->standby_timer)
        event_free(server->standby_timer);
    if (server->ended)
        event_free(server->ended);
    fd_close(&server->process_fd);
    free(server);
}

struct server_process *server_process_create(struct daemon *daemon,
                                             const struct server_route *route,
                                             enum server_role role)
{
    struct server_process *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    server->daemon = daemon;
    text_copy(server->name, sizeof(server->name), route->name);
    lane_name_service(route->name, server->service);
    text_copy(server->devices, sizeof(server->devices), route->devices);
    server->uid = route->uid;
    server->owner = route->owner;
    server->gid = route->gid;
    server->role = role;
    server->since = time(NULL);
    const struct server_process *sibling = lane_find_other(daemon, server->service, server->name);
    server->limits = sibling ? sibling->limits : daemon->defaults;
    server->connection.fd = -1;
    server->log.fd = -1;
    server->process_fd = -1;
    list_init(&server->link);
    list_init(&server->requests);
    list_init(&server->records);
    server->deadline = evtimer_new(daemon->base, on_deadline, server);
    if (server->deadline)
        return server;
    server_process_free(server);
    return NULL;
}

#define PF_EXITING 0x4 /* of the flags in proc(5): the process has begun to end */

/* A process that is killed closes its socket some time later, when its driver has cleaned up. */
static bool is_exiting(pid_t pid)
{
    return process_stat_read(pid).flags & PF_EXITING;
}

bool server_process_has_died(struct server_process *server)
{
    if (sock_hung_up(server->connection.fd) || is_exiting(server->pid))
        server->stopping = true;
    return server->stopping;
}

void server_process_answer_starter(struct server_process *server, bool ready)
{
    struct start_waiter starter = server->starter;

    server->starter = (struct start_waiter){NULL, NULL};
    if (starter.done)
        starter.done(starter.context, server, ready);
}

/* ---- stop ---- */

static void kill_useless(struct server_process *server, const char *why)
{
    journal("Server %d: %s; killing it", (int)server->pid, why);
    server->stopping = true;
    server_process_signal(server, SIGKILL);
}

bool server_process_kill_abandoned(struct server_process *server)
{
    if (!server->abandoned || server->abandoned < server->handed_over)
        return false;
    server->daemon->forced |= server->daemon->quitting;
    kill_useless(server, "only kernels that do not end are left there");
    return true;
}

/* Each replacement makes a context on each device. */
static bool is_replaced_too_often(const struct server_process *server)
{
    static struct user_rate rate = {.interval_ns = NS_PER_SEC, .burst = 20};

    return !user_rate_take(&rate, server->uid, clock_ns());
}

bool server_process_kill_useless(struct server_process *server)
{
    if (!server->heap_used || server->handed_over || is_replaced_too_often(server))
        return server_process_kill_abandoned(server);
    kill_useless(server, "kernels of programs that have ended may have left memory in its heap");
    return true;
}

bool server_process_is_emptying(const struct server_process *server)
{
    if (!server->heap_used || !server->handed_over)
        return false;
    list_for_each (struct client_record, client, &server->records, link) {
        if (!process_is_gone(client->identity.pid))
            return false;
    }
    return true;
}

void server_process_stop(struct server_process *server, bool force)
{
    struct server_shutdown message;

    server_message_init(&message, SERVER_SHUTDOWN, 0);
    message.force = force;
    server->stopping = server->dismissed = true;
    standby_dismiss(server);
    connection_send(&server->connection, &message, sizeof(message), -1);
    /* Until it is ready it reads no messages. It has no clients either. */
    if (server->state == SERVER_INITIALIZING)
        server_process_signal(server, SIGTERM);
    if (force || server->state == SERVER_INITIALIZING)
        server_process_set_deadline(server, heartbeat_process_is_stopped(server) ? STOPPED_TIMEOUT_S
                                                                                 : STOP_TIMEOUT_S);
    else
        server_process_kill_abandoned(server);
}

/* ---- end ---- */

static void log_exit(const struct server_process *server, int wait_status)
{
    if (wait_status == SERVER_EXIT_UNKNOWN)
        journal("Server %d has ended", (int)server->pid);
    else if (WIFSIGNALED(wait_status))
        journal("Server %d was killed by signal %d (%s)", (int)server->pid, WTERMSIG(wait_status),
                strsignal(WTERMSIG(wait_status)));
    else
        journal("Server %d exited with status %d%s", (int)server->pid, WEXITSTATUS(wait_status),
                server->state == SERVER_FAULTED ? ", after the fatal GPU error" : "");
}

static void describe_failed_start(struct server_process *server, int wait_status)
{
    char how[40] = "";

    if (wait_status != SERVER_EXIT_UNKNOWN)
        text_format(how, sizeof(how), " (%s %d)",
                    WIFSIGNALED(wait_status) ? "signal" : "exit status",
                    WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
    server->failure = FUNNEL_ERROR_MPS_CONNECTION_FAILED;
    text_format(server->failure_text, sizeof(server->failure_text),
                "The server died while it started%s; see %.300s/server.log", how,
                server->daemon->paths.log);
}

/* Clients and front ends that waited for its start are told why it failed. */
static void report_failed_start(struct server_process *server, int wait_status)
{
    if (!server->failure)
        describe_failed_start(server, wait_status);
    server->daemon->events->server_failed(server->daemon, server->name, server->failure,
                                          server->failure_text);
    server_process_answer_starter(server, false);
}

/* A server that was taken over has ended before it said so, and a front end has waited for that. */
static void answer_of_taken_over(struct server_process *server, int wait_status)
{
    describe_failed_start(server, wait_status);
    server_process_answer_starter(server, false);
}

void server_process_lost(struct server_process *server)
{
    server->stopping = true;
    if (server->resuming)
        takeover_enter_claims(server);
    if (replacement_find(server, replacement_is_wanted(server)))
        server->daemon->events->server_gone(server->daemon, server->name);
}

/* Tells programs that wait for a server of this name that there is none, unless one is still on its
 * way out. Then they are told when that has gone. */
static void tell_gone(struct daemon *daemon, const char *name)
{
    if (!server_process_find(daemon, name) && !server_process_find_ending(daemon, name))
        daemon->events->server_gone(daemon, name);
}

/* The device may have been too small for two servers, or for one process only. */
static bool may_start_again(const struct server_process *server)
{
    return server->beside_another && !server->dismissed && !server->starter.done;
}

/* The serving server of that name has ended, and nothing has taken its place yet. */
static void free_serving(struct server_process *server, int wait_status)
{
    struct daemon *daemon = server->daemon;
    bool started = server_process_has_started(server), again = may_start_again(server);
    char name[SERVER_NAME_MAX];

    text_copy(name, sizeof(name), server->name);
    if (!started && !again)
        report_failed_start(server, wait_status);
    else if (server->starter.done)
        answer_of_taken_over(server, wait_status);
    standby_dismiss(server);
    replacement_end_old(server);
    server_process_free(server);
    timeslices_divide(daemon);
    if (started)
        daemon->events->server_gone(daemon, name);
    else if (again)
        tell_gone(daemon, name);
}

static void free_replaced(struct server_process *server)
{
    struct daemon *daemon = server->daemon;
    char name[SERVER_NAME_MAX];

    text_copy(name, sizeof(name), server->name);
    server_process_free(server);
    tell_gone(daemon, name);
}

static void free_standby(struct server_process *standby)
{
    standby_ended(standby);
    server_process_free(standby);
}

bool server_process_reap(struct daemon *daemon, pid_t pid, int wait_status)
{
    struct server_process *server = find_process(daemon, pid);

    if (!server)
        return false;
    connection_drain(&server->connection);
    server_log_close(server);
    log_exit(server, wait_status);
    server_process_lost(server);
    if (server->role == SERVER_SERVING)
        free_serving(server, wait_status);
    else if (server->role == SERVER_STANDBY)
        free_standby(server);
    else
        free_replaced(server);
    lane_moves_follow(daemon);
    daemon->events->server_reaped(daemon);
    return true;
}

void server_process_send_quotas(struct server_process *server)
{
    struct server_set_quotas message;

    server_message_init(&message, SERVER_SET_QUOTAS, 0);
    message.quotas = server->daemon->quotas;
    connection_send(&server->connection, &message, sizeof(message), -1);
}

void server_process_send_quotas_to_all(struct daemon *daemon)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->state == SERVER_ACTIVE)
            server_process_send_quotas(server);
}
