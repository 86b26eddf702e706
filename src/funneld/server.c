/* SPDX-License-Identifier: Apache-2.0 */
/* See server.h. */
#include "funneld_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "aftermath.h"
#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "fd.h"
#include "journal.h"
#include "limits_text.h"
#include "newcomer.h"
#include "question.h"
#include "service.h"
#include "sock.h"
#include "spawn.h"
#include "text.h"

#define START_TIMEOUT_S 120 /* many GPUs without persistence take their time */
#define STOP_TIMEOUT_S 10   /* from the order to leave at once, or the end of its socket */

#define STATUS_CONNECTION_FAILED 805
#define STATUS_SERVER_NOT_READY 807

/* ---- its life ---- */

struct server *server_for(struct daemon *daemon, const char *name)
{
    list_for_each(struct server, server, &daemon->servers,
                  link) if (!strcmp(server->name, name)) return server;
    return NULL;
}

struct server *server_by_pid(struct daemon *daemon, pid_t pid)
{
    list_for_each(struct server, server, &daemon->servers,
                  link) if (server->pid == pid) return server;
    return NULL;
}

const char *server_state_name(const struct server *server)
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

static void set_deadline(struct server *server, int seconds)
{
    struct timeval patience = {.tv_sec = seconds};

    evtimer_add(server->deadline, &patience);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;

    journal("Server %d does not %s in time; killing it", (int)server->pid,
            server->state == SERVER_INITIALIZING && !server->stopping ? "start" : "end");
    if (!server->failure) {
        server->failure = STATUS_SERVER_NOT_READY;
        text_copy(server->failure_text, sizeof(server->failure_text),
                  "The server did not become ready in time; see server.log");
    }
    server->daemon->forced |= server->daemon->quitting;
    kill(server->pid, SIGKILL);
}

static void server_free(struct server *server)
{
    list_remove(&server->link);
    questions_end(server);
    aftermath_forget_clients(server);
    peer_close(&server->peer);
    if (server->deadline)
        event_free(server->deadline);
    free(server);
}

/* A full disk is no reason for programs to stop: their server goes on without a log. */
static int open_server_log(struct daemon *daemon, const char *name, int *ret_fd)
{
    int error = journal_open_server(daemon->paths.log, name, ret_fd);

    if (error)
        journal("Cannot open server.log for %s: %s", name, strerror(-error));
    if (error != -ENOSPC && error != -EDQUOT)
        return error;
    *ret_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return *ret_fd < 0 ? -errno : 0;
}

static int spawn_for(struct daemon *daemon, const struct server_route *route, pid_t *ret_pid,
                     int *ret_fd)
{
    char program[PATH_MAX], empty[PATH_MAX];
    _cleanup_fd_ int log_fd = -1;
    struct spawn spawn = {.program = program,
                          .device = daemon->device,
                          .pipe_directory = empty,
                          .visible_devices = route->devices,
                          .uid = route->uid,
                          .gid = route->gid};
    int error = path_of_sibling("bin/funnel-server", program, sizeof(program));

    if (!error)
        error = path_join(daemon->paths.pipe, INSTANCE_EMPTY_NAME, empty, sizeof(empty));
    if (!error)
        error = open_server_log(daemon, route->name, &log_fd);
    spawn.log_fd = log_fd;
    return error ? error : spawn_server(&spawn, ret_pid, ret_fd);
}

static const struct peer_handlers server_handlers;

static struct server *server_create(struct daemon *daemon, const struct server_route *route)
{
    struct server *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    server->daemon = daemon;
    text_copy(server->name, sizeof(server->name), route->name);
    server->uid = route->uid;
    server->since = time(NULL);
    server->limits = daemon->defaults;
    server->peer.fd = -1;
    list_init(&server->link);
    list_init(&server->questions);
    list_init(&server->clients);
    server->deadline = evtimer_new(daemon->base, on_deadline, server);
    if (server->deadline)
        return server;
    server_free(server);
    return NULL;
}

int server_start(struct daemon *daemon, const struct server_route *route,
                 struct server **ret_server)
{
    struct server *server = server_create(daemon, route);
    int fd = -1;
    int error = server ? spawn_for(daemon, route, &server->pid, &fd) : -ENOMEM;

    if (error) {
        if (server)
            server_free(server);
        return error;
    }
    list_append(&daemon->servers, &server->link);
    journal("Starting new server %d for user %u", (int)server->pid, (unsigned)route->uid);
    /* Without memory for its events the server sees its socket close, and leaves. */
    error = peer_open(&server->peer, daemon->base, fd, &server_handlers, server);
    server->stopping = error != 0;
    set_deadline(server, error ? STOP_TIMEOUT_S : START_TIMEOUT_S);
    *ret_server = server;
    return 0;
}

bool server_has_died(struct server *server)
{
    if (sock_hung_up(server->peer.fd))
        server->stopping = true;
    return server->stopping;
}

/* The share of a namespace replaces what the program asks for, and does not only tighten it. */
static void combine_limits(struct server *server, const struct mps_namespace *entrance,
                           const struct server_identity *identity, const struct hello *hello,
                           struct server_limits *limits)
{
    const struct daemon *daemon = server->daemon;
    struct hello wish = *hello;

    limits_of_server(&server->limits, daemon->defaults.priority, &server->ready, limits);
    if (entrance) {
        limit_order_apply(&entrance->order, &server->ready, limits);
        wish.sm_centipercent = entrance->order.sm_centipercent ? 0 : wish.sm_centipercent;
    }
    rules_apply(&daemon->rules, identity, &server->ready, limits);
    limits_tighten(limits, &wish, &server->ready);
}

static void log_introduction(const struct server *server, const struct server_client *message)
{
    char who[IDENTITY_TEXT_MAX], limits[LIMITS_TEXT_MAX];

    identity_describe(&message->identity, who);
    limits_describe(&message->limits, server->ready.device_count, limits);
    journal("Client %d is of %s", message->identity.pid, who);
    journal("Client %d goes to server %d with %s", message->identity.pid, (int)server->pid, limits);
}

void server_introduce(struct server *server, const struct mps_namespace *entrance,
                      const struct server_identity *identity, const struct hello *hello, int fd)
{
    struct statics *statics = service_statics(server->daemon, server->name);
    struct server_client message;

    server_message_init(&message, SERVER_CLIENT, 0);
    message.identity = *identity;
    text_copy(message.identity.space, sizeof(message.identity.space),
              entrance ? entrance->name : NAMESPACE_DEFAULT);
    message.hello = *hello;
    combine_limits(server, entrance, identity, hello, &message.limits);
    if (!statics_bind(statics, &server->ready, hello, &message.limits))
        journal("Client %d of user %u can have no context (915): this %s has static partitions, "
                "and CUDA_MPS_SM_PARTITION is \"%.100s\", which names none of them; %s lists them",
                identity->pid, identity->uid, statics->version3 ? "server" : "daemon",
                hello->sm_partition, statics->version3 ? "sm-partition list" : "lspart");
    server->introduced++;
    log_introduction(server, &message);
    peer_send(&server->peer, &message, sizeof(message), fd);
}

bool server_kill_abandoned(struct server *server)
{
    if (!server->abandoned || server->abandoned < server->introduced)
        return false;
    journal("Server %d: nobody is left there but kernels that do not end; killing it",
            (int)server->pid);
    server->stopping = true;
    server->daemon->forced |= server->daemon->quitting;
    kill(server->pid, SIGKILL);
    return true;
}

void server_stop(struct server *server, bool force)
{
    struct server_shutdown message;

    server_message_init(&message, SERVER_SHUTDOWN, 0);
    message.force = force;
    server->stopping = true;
    peer_send(&server->peer, &message, sizeof(message), -1);
    /* Until it is ready it reads nothing. It has no clients either. */
    if (server->state == SERVER_INITIALIZING)
        kill(server->pid, SIGTERM);
    if (force || server->state == SERVER_INITIALIZING)
        set_deadline(server, STOP_TIMEOUT_S);
    else
        server_kill_abandoned(server);
}

/* ---- what it says ---- */

static void answer_starter(struct server *server, int status)
{
    struct console *starter = server->starter;
    char line[COMMAND_PENDING_MAX];

    server->starter = NULL;
    if (starter && *starter->pending && status == COMMAND_OK) {
        text_copy(line, sizeof(line), starter->pending);
        *starter->pending = '\0';
        commands_run(starter, line);
        return;
    }
    if (starter && status != COMMAND_OK)
        console_print(starter, "Failed to start a server for user %u: %s", (unsigned)server->uid,
                      server->failure_text);
    if (starter) {
        *starter->pending = '\0';
        console_done(starter, status);
    }
}

static void on_ready(struct server *server, const struct server_ready *ready)
{
    server->ready = *ready;
    if (server->ready.device_count > SERVER_MAX_DEVICES)
        server->ready.device_count = SERVER_MAX_DEVICES;
    for (unsigned i = 0; i < server->ready.device_count; i++)
        server->ready.devices[i].name[sizeof(ready->devices[i].name) - 1] = '\0';
    server->state = SERVER_ACTIVE;
    service_server_ready(server);
    if (!server->stopping)
        evtimer_del(server->deadline);
    journal("NEW SERVER %d: Ready", (int)server->pid);
    answer_starter(server, COMMAND_OK);
    if (!server->stopping)
        newcomer_server_ready(server);
}

static void on_failed(struct server *server, const struct server_failed *failed)
{
    server->failure = failed->status ? failed->status : STATUS_CONNECTION_FAILED;
    memcpy(server->failure_text, failed->text, sizeof(server->failure_text));
    server->failure_text[sizeof(server->failure_text) - 1] = '\0';
    journal("Server %d failed to start with status %d: %s", (int)server->pid, server->failure,
            server->failure_text);
}

static void on_state(struct server *server, uint32_t state)
{
    if (state > SERVER_FAULTED || state == SERVER_INITIALIZING || state == server->state)
        return;
    server->state = state;
    journal("Server %d is in state %s", (int)server->pid, server_state_name(server));
}

/* A lost context is not mended: the server ends. Who comes before its clients have ended, too, is
 * turned away. */
static void on_fault(struct server *server, const struct server_fault *fault)
{
    journal("Server %d: fatal GPU error %d on device %u: %.*s", (int)server->pid, fault->status,
            fault->device, (int)sizeof(fault->text), fault->text);
    server->state = SERVER_FAULTED;
    server->stopping = true;
    aftermath_begin(server);
    set_deadline(server, STOP_TIMEOUT_S);
}

/* memacct set audit_log=true */
static void audit(const struct server *server, const struct server_client_gone *gone)
{
    for (unsigned i = 0; i < server->ready.device_count; i++)
        if (gone->memory_peak[i])
            journal("Audit: client %d (id %u) of server %s held at most %llu bytes of device %u",
                    gone->pid, gone->id, server->name, (unsigned long long)gone->memory_peak[i], i);
    if (gone->memory_refused)
        journal("Audit: client %d (id %u) of server %s met its memory limit %llu times", gone->pid,
                gone->id, server->name, (unsigned long long)gone->memory_refused);
}

static void on_gone(struct server *server, const struct server_client_gone *gone)
{
    if (gone->id)
        aftermath_detached(server, gone->pid);
    if (server->daemon->audits)
        audit(server, gone);
    server->introduced -= server->introduced > 0;
    if (server->stopping)
        server_kill_abandoned(server);
    if (gone->status)
        journal("Client %d (id %u) of server %d ended with status %d%s%.*s", gone->pid, gone->id,
                (int)server->pid, gone->status, *gone->text ? ": " : "", (int)sizeof(gone->text),
                gone->text);
    else
        journal("Client %d (id %u) of server %d has left", gone->pid, gone->id, (int)server->pid);
}

/* Who waits for the server's end does not wait for that. */
static void on_abandoned(struct server *server, unsigned clients)
{
    if (clients > server->abandoned)
        journal("Server %d: %u clients have ended, but a kernel goes on", (int)server->pid,
                clients);
    server->abandoned = clients;
    if (server->stopping)
        server_kill_abandoned(server);
}

static void hear(void *owner, const void *data, size_t size)
{
    struct server *server = owner;
    const union server_any *any = data;

    if (!server_message_valid(data, size)) {
        journal("Server %d sent a message of %zu bytes that nobody understands; killing it",
                (int)server->pid, size);
        kill(server->pid, SIGKILL);
        return;
    }
    switch (any->header.kind) {
    case SERVER_READY:
        on_ready(server, &any->ready);
        break;
    case SERVER_FAILED:
        on_failed(server, &any->failed);
        break;
    case SERVER_STATE_CHANGED:
        on_state(server, any->state_changed.state);
        break;
    case SERVER_CLIENT_ATTACHED:
        journal("Client %d attached to server %d with id %u", any->client_attached.pid,
                (int)server->pid, any->client_attached.id);
        aftermath_attached(server, any->client_attached.pid);
        break;
    case SERVER_CLIENT_GONE:
        on_gone(server, &any->client_gone);
        break;
    case SERVER_STATUS_ROW:
        question_row(server, &any->status_row);
        break;
    case SERVER_STATUS_END:
        question_answered(server, any->header.request, 0, &any->status_end);
        break;
    case SERVER_RESULT:
        question_answered(server, any->header.request, any->result.status, NULL);
        break;
    case SERVER_FAULT:
        on_fault(server, &any->fault);
        break;
    case SERVER_ABANDONED:
        on_abandoned(server, any->abandoned.clients);
        break;
    }
}

static void on_message(void *owner, const void *data, size_t size)
{
    uid_t before = journal_account(((struct server *)owner)->uid);

    hear(owner, data, size);
    journal_account(before);
}

/* It is about to exit, or has lost its mind: in both cases its process is what counts. */
static void on_closed(void *owner)
{
    struct server *server = owner;

    server->stopping = true;
    peer_close(&server->peer);
    set_deadline(server, STOP_TIMEOUT_S);
}

static const struct peer_handlers server_handlers = {on_message, on_closed};

/* ---- its end ---- */

static void log_exit(const struct server *server, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        journal("Server %d was killed by signal %d (%s)", (int)server->pid, WTERMSIG(wait_status),
                strsignal(WTERMSIG(wait_status)));
    else
        journal("Server %d exited with status %d%s", (int)server->pid, WEXITSTATUS(wait_status),
                server->state == SERVER_FAULTED ? ", after the fatal GPU error" : "");
}

/* Those who waited for its start hear why it failed; who came while it ended gets a new one. */
static void refuse_those_who_waited(struct server *server, int wait_status)
{
    if (!server->failure) {
        server->failure = STATUS_CONNECTION_FAILED;
        text_format(server->failure_text, sizeof(server->failure_text),
                    "The server died while it started (%s %d); see %.300s/server.log",
                    WIFSIGNALED(wait_status) ? "signal" : "exit status",
                    WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
                    server->daemon->paths.log);
    }
    newcomer_refuse_waiting(server->daemon, server->name, server->failure, server->failure_text);
    answer_starter(server, COMMAND_FAILED);
}

bool server_reap(struct daemon *daemon, pid_t pid, int wait_status)
{
    struct server *server = server_by_pid(daemon, pid);
    char name[SERVER_NAME_MAX];
    bool started;

    if (!server)
        return false;
    peer_drain(&server->peer);
    log_exit(server, wait_status);
    started = server->state != SERVER_INITIALIZING;
    text_copy(name, sizeof(name), server->name);
    if (!started)
        refuse_those_who_waited(server, wait_status);
    server_free(server);
    if (started)
        newcomer_server_gone(daemon, name);
    daemon_server_gone(daemon);
    return true;
}

void server_reopen_logs(struct daemon *daemon)
{
    struct server_reopen_log message;
    int fd;

    server_message_init(&message, SERVER_REOPEN_LOG, 0);
    list_for_each(struct server, server, &daemon->servers,
                  link) if (!open_server_log(daemon, server->name, &fd))
        peer_send(&server->peer, &message, sizeof(message), fd);
}
