/* SPDX-License-Identifier: Apache-2.0 */
/* See server_process.h. */
#include "server_process.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "claim_table.h"
#include "client_record.h"
#include "clock.h"
#include "fd.h"
#include "funnel_errors.h"
#include "journal.h"
#include "limits_text.h"
#include "pending_request.h"
#include "replacement.h"
#include "server_handlers.h"
#include "service.h"
#include "sock.h"
#include "spawn.h"
#include "standby.h"
#include "text.h"
#include "timeslice.h"
#include "user_owner.h"
#include "user_rate.h"

#define START_TIMEOUT_S 120 /* many GPUs without persistence take their time */
#define STOP_TIMEOUT_S 10   /* from the order to leave at once, or the end of its socket */

/* ---- lookup ---- */

struct server_process *server_process_find(const struct daemon *daemon, const char *name)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->role == SERVER_SERVING && !strcmp(server->name, name))
            return server;
    return NULL;
}

/* One of that name whose place another has taken, and whose process is still there. */
static struct server_process *find_ending(const struct daemon *daemon, const char *name)
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

static void set_deadline(struct server_process *server, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    evtimer_add(server->deadline, &timeout);
}

void server_process_set_stop_deadline(struct server_process *server)
{
    set_deadline(server, STOP_TIMEOUT_S);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct server_process *server = context;

    journal("Server %d did not %s in time; killing it", (int)server->pid,
            server->state == SERVER_INITIALIZING && !server->stopping ? "start" : "end");
    if (!server->failure) {
        server->failure = FUNNEL_ERROR_MPS_SERVER_NOT_READY;
        text_copy(server->failure_text, sizeof(server->failure_text),
                  "The server did not become ready in time; see server.log");
    }
    server->daemon->forced |= server->daemon->quitting;
    kill(server->pid, SIGKILL);
}

static void server_process_free(struct server_process *server)
{
    list_remove(&server->link);
    pending_requests_end(server);
    client_records_close(server);
    server_log_close(server);
    connection_close(&server->connection);
    heartbeat_end(server);
    if (server->deadline)
        event_free(server->deadline);
    if (server->standby_timer)
        event_free(server->standby_timer);
    free(server);
}

static int spawn_for(struct server_process *server, const struct server_route *route, int *ret_fd)
{
    struct daemon *daemon = server->daemon;
    char program[PATH_MAX], empty[PATH_MAX];
    _cleanup_fd_ int log_fd = -1;
    struct spawn spawn = {.program = program,
                          .device = daemon->device,
                          .spare = daemon->spare,
                          .pipe_directory = empty,
                          .visible_devices = route->devices,
                          .uid = route->uid,
                          .gid = route->gid};
    int error = path_of_sibling("bin/funnel-server", program, sizeof(program));

    if (!error)
        error = path_join(daemon->paths.pipe, INSTANCE_EMPTY_NAME, empty, sizeof(empty));
    if (!error)
        error = server_log_open(server, &log_fd);
    spawn.log_fd = log_fd;
    spawn.claims_fd = claim_table_of(route->uid);
    if (!error && spawn.claims_fd < 0)
        error = spawn.claims_fd;
    return error ? error : spawn_server(&spawn, &server->pid, ret_fd);
}

static struct server_process *server_process_create(struct daemon *daemon,
                                                    const struct server_route *route,
                                                    enum server_role role)
{
    struct server_process *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    server->daemon = daemon;
    text_copy(server->name, sizeof(server->name), route->name);
    text_copy(server->devices, sizeof(server->devices), route->devices);
    server->uid = route->uid;
    server->owner = user_owner(route->uid);
    server->gid = route->gid;
    server->role = role;
    server->since = time(NULL);
    server->limits = daemon->defaults;
    server->connection.fd = -1;
    server->log.fd = -1;
    list_init(&server->link);
    list_init(&server->requests);
    list_init(&server->records);
    server->deadline = evtimer_new(daemon->base, on_deadline, server);
    if (server->deadline)
        return server;
    server_process_free(server);
    return NULL;
}

/* Nobody uses it, and nobody has asked for it a moment ago. */
static bool is_idle(const struct server_process *server)
{
    return server->state == SERVER_ACTIVE && !server->stopping && !server->handed_over;
}

/* Ends an idle server of `owner`, or of anyone, when there are `most`: whether another one may
 * start. */
static bool make_room(struct daemon *daemon, const uid_t *owner, uint64_t most)
{
    struct server_process *idle = NULL;
    uint64_t count = 0;

    list_for_each (struct server_process, server, &daemon->servers, link) {
        if (server->role != SERVER_SERVING || (owner && server->owner != *owner))
            continue;
        count += !server->stopping;
        if (!idle && is_idle(server))
            idle = server;
    }
    if (count < most)
        return true;
    if (!idle)
        return false;
    journal("Server %d has no clients, and ends for another one: there may be %llu servers%s",
            (int)idle->pid, (unsigned long long)most, owner ? " of its user" : "");
    server_process_stop(idle, false);
    return true;
}

/* A user whose servers end as fast as they start, by whatever means, must not keep the machine busy
 * with starting them. */
static bool starts_too_often(uid_t owner)
{
    static struct user_rate rate = {.interval_ns = 5 * NS_PER_SEC, .burst = 10};

    return !user_rate_take(&rate, owner, clock_ns());
}

/* 0; -EDQUOT, -EUSERS or -EAGAIN. The daemon's own user has all there is. */
static int may_serve(struct daemon *daemon, uid_t owner)
{
    const uint64_t *quotas = daemon->quotas.value;

    if (owner != daemon->uid && !make_room(daemon, &owner, quotas[QUOTA_USER_SERVERS]))
        return -EDQUOT;
    if (!make_room(daemon, NULL, quotas[QUOTA_SERVERS]))
        return -EUSERS;
    return owner != daemon->uid && starts_too_often(owner) ? -EAGAIN : 0;
}

static void log_start(const struct server_process *server)
{
    if (server->role == SERVER_STANDBY)
        journal("Starting standby server %d for user %u, which is to take the place of %s",
                (int)server->pid, (unsigned)server->uid, server->name);
    else
        journal("Starting new server %d for user %u", (int)server->pid, (unsigned)server->uid);
}

static int start_process(struct daemon *daemon, const struct server_route *route,
                         enum server_role role, struct server_process **ret_server)
{
    struct server_process *server = NULL;
    int fd = -1;
    int error = role == SERVER_STANDBY ? 0 : may_serve(daemon, user_owner(route->uid));

    if (!error)
        server = server_process_create(daemon, route, role);
    if (!error)
        error = server ? spawn_for(server, route, &fd) : -ENOMEM;
    if (error) {
        if (server)
            server_process_free(server);
        return error;
    }
    list_append(&daemon->servers, &server->link);
    log_start(server);
    /* Without memory for its events the server sees its socket close, and leaves. */
    error =
        connection_open(&server->connection, daemon->base, fd, &server_connection_handlers, server);
    server->connection.sender = server->pid;
    server->stopping = error != 0;
    server->beside_another = find_ending(daemon, route->name) != NULL;
    set_deadline(server, error ? STOP_TIMEOUT_S : START_TIMEOUT_S);
    *ret_server = server;
    return 0;
}

int server_process_start(struct daemon *daemon, const struct server_route *route,
                         struct server_process **ret_server)
{
    return start_process(daemon, route, SERVER_SERVING, ret_server);
}

const char *server_process_start_error(int error)
{
    switch (error) {
    case -EUSERS:
        return "there are as many servers as the quota servers allows, and each has clients";
    case -EDQUOT:
        return "the user has as many servers as the quota user-servers allows, and each has "
               "clients";
    case -EAGAIN:
        return "servers of the user have started too often; try again in some seconds";
    }
    return strerror(-error);
}

int server_process_start_another(const struct server_process *server, enum server_role role,
                                 struct server_process **ret_another)
{
    struct server_route route = {.uid = server->uid, .gid = server->gid};

    text_copy(route.name, sizeof(route.name), server->name);
    text_copy(route.devices, sizeof(route.devices), server->devices);
    return start_process(server->daemon, &route, role, ret_another);
}

#define PF_EXITING 0x4 /* of the flags in proc(5): the process has begun to end */

/* A process that is killed closes its socket some time later, when its driver has cleaned up. */
static bool is_exiting(pid_t pid)
{
    char path[40];
    unsigned flags = 0;

    text_format(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
        flags = 0;
    fclose(file);
    return flags & PF_EXITING;
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

/* ---- clients ---- */

/* The share of a namespace replaces what the program asks for; it is not only an upper bound. */
static void combine_limits(struct server_process *server, const struct mps_namespace *space,
                           const struct server_identity *identity, const struct hello *hello,
                           struct server_limits *limits)
{
    const struct daemon *daemon = server->daemon;
    struct hello wish = *hello;

    limits_of_server(&server->limits, daemon->defaults.priority, &server->ready, limits);
    if (space) {
        limit_change_apply(&space->change, &server->ready, limits);
        wish.sm_centipercent = space->change.sm_centipercent ? 0 : wish.sm_centipercent;
    }
    limit_rules_apply(&daemon->rules, identity, &server->ready, limits);
    limits_tighten(limits, &wish, &server->ready);
}

static void log_client(const struct server_process *server, const struct server_client *message)
{
    char who[IDENTITY_TEXT_MAX], limits[LIMITS_TEXT_MAX];

    identity_describe(&message->identity, who);
    limits_describe(&message->limits, server->ready.device_count, limits);
    journal("Client %d is of %s", message->identity.pid, who);
    journal("Client %d is handed over to server %d with %s", message->identity.pid,
            (int)server->pid, limits);
}

/* Takes `fd`. */
static void refuse_client(const struct server_process *server,
                          const struct server_identity *identity, int fd)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC,
                              .status = FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED};

    text_format(
        welcome.text, sizeof(welcome.text),
        "The server %s has been given %u programs and has not said that they have gone; try "
        "again when some have ended",
        server->name, server->handed_over);
    journal("Client %d of user %u refused with status %d: %s", identity->pid, identity->uid,
            welcome.status, welcome.text);
    sock_send(fd, &welcome, sizeof(welcome), NULL, 0);
    fd_close(&fd);
}

void server_process_add_client(struct server_process *server, const struct mps_namespace *space,
                               const struct server_identity *identity,
                               const struct client_program *program, const struct hello *hello,
                               int fd)
{
    struct static_partitions *partitions = service_partitions(server->daemon, server->name);
    struct client_record *record = client_record_add(server, identity, program);
    struct server_client message;

    if (!record) {
        refuse_client(server, identity, fd);
        return;
    }
    text_copy(record->identity.space, sizeof(record->identity.space),
              space ? space->name : NAMESPACE_DEFAULT);
    server_message_init(&message, SERVER_CLIENT, 0);
    message.id = record->id;
    message.identity = record->identity;
    message.hello = *hello;
    combine_limits(server, space, identity, hello, &message.limits);
    if (!static_partitions_bind(partitions, &server->ready, hello, &message.limits))
        journal("Client %d of user %u cannot have a context (915): this %s has static partitions, "
                "and CUDA_MPS_SM_PARTITION is \"%.100s\", which names none of them; %s lists them",
                identity->pid, identity->uid, partitions->version3 ? "server" : "daemon",
                hello->sm_partition, partitions->version3 ? "sm-partition list" : "lspart");
    log_client(server, &message);
    connection_send(&server->connection, &message, sizeof(message), fd);
}

/* ---- stop ---- */

bool server_process_kill_abandoned(struct server_process *server)
{
    if (!server->abandoned || server->abandoned < server->handed_over)
        return false;
    journal("Server %d: only kernels that do not end are left there; killing it", (int)server->pid);
    server->stopping = true;
    server->daemon->forced |= server->daemon->quitting;
    kill(server->pid, SIGKILL);
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
        kill(server->pid, SIGTERM);
    if (force || server->state == SERVER_INITIALIZING)
        set_deadline(server, STOP_TIMEOUT_S);
    else
        server_process_kill_abandoned(server);
}

/* ---- end ---- */

static void log_exit(const struct server_process *server, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        journal("Server %d was killed by signal %d (%s)", (int)server->pid, WTERMSIG(wait_status),
                strsignal(WTERMSIG(wait_status)));
    else
        journal("Server %d exited with status %d%s", (int)server->pid, WEXITSTATUS(wait_status),
                server->state == SERVER_FAULTED ? ", after the fatal GPU error" : "");
}

/* Clients and front ends that waited for its start are told why it failed. */
static void report_failed_start(struct server_process *server, int wait_status)
{
    if (!server->failure) {
        server->failure = FUNNEL_ERROR_MPS_CONNECTION_FAILED;
        text_format(server->failure_text, sizeof(server->failure_text),
                    "The server died while it started (%s %d); see %.300s/server.log",
                    WIFSIGNALED(wait_status) ? "signal" : "exit status",
                    WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
                    server->daemon->paths.log);
    }
    server->daemon->events->server_failed(server->daemon, server->name, server->failure,
                                          server->failure_text);
    server_process_answer_starter(server, false);
}

void server_process_lost(struct server_process *server)
{
    server->stopping = true;
    if (replacement_find(server, replacement_is_wanted(server)))
        server->daemon->events->server_gone(server->daemon, server->name);
}

/* Tells programs that wait for a server of this name that there is none, unless one is still on its
 * way out: then they are told when that has gone. */
static void tell_gone(struct daemon *daemon, const char *name)
{
    if (!server_process_find(daemon, name) && !find_ending(daemon, name))
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
    bool started = server->state != SERVER_INITIALIZING, again = may_start_again(server);
    char name[SERVER_NAME_MAX];

    text_copy(name, sizeof(name), server->name);
    if (!started && !again)
        report_failed_start(server, wait_status);
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
