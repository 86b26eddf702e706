/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_client.h. */
#include "pending_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_record.h"
#include "client_routes.h"
#include "clock.h"
#include "connection.h"
#include "console.h"
#include "fault_drain.h"
#include "fd.h"
#include "funnel_errors.h"
#include "inherited.h"
#include "journal.h"
#include "lane_name.h"
#include "peer_group.h"
#include "peer_identity.h"
#include "peer_program.h"
#include "replacement.h"
#include "server_process.h"
#include "server_start.h"
#include "service.h"
#include "sock.h"
#include "text.h"
#include "user_owner.h"
#include "user_rate.h"

#define HELLO_TIMEOUT_S 10
#define STOPPING_TIMEOUT_S 15 /* how long a program waits for a server that ends */

#define ACCEPTS_PER_TURN 64

#define ATTACH_BURST_S 10u        /* as many may come at once */
#define START_PAUSE_NS NS_PER_SEC /* before a start that came too early is tried again */

/* How long a program waits until a server has noticed the end of its last program, and how often it
 * is looked after. */
#define EMPTYING_TIMEOUT_NS (2 * NS_PER_SEC)
#define EMPTYING_PAUSE_NS (5 * NS_PER_MS)

struct pending_client {
    struct list link;
    struct daemon *daemon;
    struct connection connection;
    struct event *deadline;
    struct server_identity identity;
    struct client_program program;
    struct hello hello;
    struct mps_namespace *space; /* NULL = the daemon's own socket, and no namespace */
    bool delayed;                /* it has said hello, and its user has come too often */
    bool waiting;                /* it has said hello, and waits for the server of this route */
    uint64_t emptying_since;     /* clock_ns() since when it waits for the last client; 0 = not */
    struct client_routes routes;
    char *groups; /* control groups of the process; NULL = not read */
};

static void set_waiting(struct pending_client *client, bool waiting)
{
    client->daemon->waiting_clients += waiting - client->waiting;
    client->waiting = waiting;
}

static void pending_client_free(struct pending_client *client)
{
    set_waiting(client, false);
    list_remove(&client->link);
    connection_close(&client->connection);
    if (client->deadline)
        event_free(client->deadline);
    free(client->groups);
    free(client);
}

/* ---- refusal ---- */

__attribute__((format(printf, 3, 4))) static void refuse(struct pending_client *client, int status,
                                                         const char *format, ...)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC, .status = status};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(welcome.text, sizeof(welcome.text), format, arguments);
    va_end(arguments);
    journal_with(LOG_EVENT(client->identity.pid, status),
                 "Client %d of user %u refused with status %d: %s", client->identity.pid,
                 client->identity.uid, status, welcome.text);
    connection_send(&client->connection, &welcome, sizeof(welcome), -1);
    pending_client_free(client);
}

static void set_deadline(struct pending_client *client, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    evtimer_add(client->deadline, &timeout);
}

static void admit_program(struct pending_client *client);

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct pending_client *client = context;
    uid_t before = journal_account(client->identity.owner);

    if (client->delayed)
        admit_program(client);
    else if (client->waiting)
        refuse(client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
               "The server %s is ending and still has clients; try again when they are done",
               client->routes.first.name);
    else
        pending_client_free(client);
    journal_account(before);
}

/* ---- programs ---- */

static void hand_over(struct pending_client *client, struct server_process *server)
{
    int fd = connection_release(&client->connection);

    client->hello.class = client->routes.class;
    server_process_add_client(server, client->space, &client->identity, &client->program,
                              &client->hello, client->groups, fd);
    pending_client_free(client);
}

static void wait_for(struct pending_client *client, const struct server_process *server)
{
    journal_with(LOG_EVENT(client->identity.pid, 0),
                 "NEW CLIENT %d from user %u: Server is not ready, push client to pending list",
                 client->identity.pid, client->identity.uid);
    set_waiting(client, true);
    if (server->stopping)
        set_deadline(client, STOPPING_TIMEOUT_S);
    else
        evtimer_del(client->deadline);
}

/* The server of the client's name; the one that takes the place of a server that is lost. */
static struct server_process *find_server(const struct pending_client *client)
{
    struct server_process *server = server_process_find(client->daemon, client->routes.first.name);

    if (!server || server->stopping || server->state != SERVER_ACTIVE)
        return server;
    if (!server_process_has_died(server) && !server_process_kill_useless(server))
        return server;
    replacement_find(server, true);
    return server_process_find(client->daemon, client->routes.first.name);
}

static void refuse_start(struct pending_client *client, int error)
{
    bool is_full = error == -EUSERS || error == -EDQUOT;

    refuse(client,
           is_full ? FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED : FUNNEL_ERROR_MPS_CONNECTION_FAILED,
           "The server could not be started: %s", server_process_start_error(error));
}

static void delay(struct pending_client *client, uint64_t ns)
{
    struct timeval pause = {.tv_sec = (time_t)(ns / NS_PER_SEC),
                            .tv_usec = (suseconds_t)(ns % NS_PER_SEC / 1000)};

    client->delayed = true;
    evtimer_add(client->deadline, &pause);
}

static void delay_start(struct pending_client *client)
{
    journal_with(LOG_EVENT(client->identity.pid, 0),
                 "Client %d of user %u waits: servers of this user have started too often",
                 client->identity.pid, client->identity.uid);
    delay(client, START_PAUSE_NS);
}

/* A server whose last program has just ended is replaced once it knows that. */
static bool waits_for_last_client(struct pending_client *client,
                                  const struct server_process *server)
{
    if (!server_process_is_emptying(server))
        return false;
    if (!client->emptying_since)
        client->emptying_since = clock_ns();
    return clock_ns() - client->emptying_since < EMPTYING_TIMEOUT_NS;
}

/* Hands the program over to its server, which is started if none runs, or lets it wait for it. */
static void place(struct pending_client *client)
{
    struct server_process *server = find_server(client);
    int error = server ? 0 : server_process_start(client->daemon, &client->routes.first, &server);

    if (error == -EAGAIN)
        delay_start(client);
    else if (error && client_routes_change(client->daemon, &client->routes))
        place(client);
    else if (error)
        refuse_start(client, error);
    else if (server->stopping || server->state != SERVER_ACTIVE)
        wait_for(client, server);
    else if (waits_for_last_client(client, server))
        delay(client, EMPTYING_PAUSE_NS);
    else {
        journal_with(LOG_ABOUT(client->identity.pid),
                     "NEW CLIENT %d from user %u: Server already exists", client->identity.pid,
                     client->identity.uid);
        hand_over(client, server);
    }
}

/* A program that moves from a lost server is not part of a fault, and does not wait for its drain.
 */
static void place_after_fault(struct pending_client *client)
{
    if (client->hello.window_base)
        fault_drain_moved(client->daemon, client->identity.pid);
    if (!client->hello.window_base &&
        fault_drain_in_progress(client->daemon, client->routes.first.name))
        refuse(client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
               "There was a fatal GPU error, and programs that it affected have not ended yet; try "
               "again when they have, or in some seconds");
    else
        place(client);
}

static void find_routes(struct pending_client *client)
{
    const struct lane_choice choice =
        lane_choice_find(&client->daemon->lane_choices, client->hello.token);

    client_routes_find(client->daemon, &client->identity, &client->program, &client->hello, &choice,
                       &client->space, &client->routes);
}

static void log_return(const struct pending_client *client)
{
    const struct client_record *record =
        client_record_find_token(client->daemon, client->hello.token);

    if (record && !record->server->stopping)
        journal("Client %d of user %u comes from the server %s", client->identity.pid,
                client->identity.uid, record->server->name);
    else
        journal_with(LOG_EVENT(client->identity.pid, 0),
                     "Client %d of user %u has lost its server, and moves to the next",
                     client->identity.pid, client->identity.uid);
}

static void log_spare_lane(const struct pending_client *client)
{
    if (!client->hello.window_base &&
        lane_name_has_domain(client->routes.first.name, LANE_DOMAIN_SPARE))
        journal_with(LOG_EVENT(client->identity.pid, 0),
                     "Client %d of user %u starts in the spare lane, because long kernels run in "
                     "the main lane",
                     client->identity.pid, client->identity.uid);
}

static bool daemon_serves(const struct daemon *daemon, uid_t uid)
{
    return daemon->uid == 0 || daemon->uid == uid;
}

/* The service whose socket the client connected to. NULL: the daemon's own. */
static const struct service *service_of(const struct pending_client *client)
{
    return client->space ? client->space->service : NULL;
}

/* Reads the control groups where they matter. Those of a process in a PID namespace that the daemon
 * cannot see are not known. */
static int find_groups(struct pending_client *client)
{
    pid_t pid = client->identity.pid;

    if (client->groups || pid <= 0 || !client_routes_need_groups(client->daemon))
        return 0;
    return peer_program_groups(client->connection.fd, pid, &client->groups);
}

/* A program that chose no namespace by its socket belongs to that of its control group. */
static int enter_namespace_of_group(struct pending_client *client)
{
    int error = find_groups(client);

    if (client->groups && !client->space)
        client->space = client_routes_by_group(client->daemon, client->groups);
    return error;
}

static void admit_program(struct pending_client *client)
{
    const struct daemon *daemon = client->daemon;
    int error = enter_namespace_of_group(client);
    const struct service *service = service_of(client);
    uid_t uid = client->identity.uid;

    client->delayed = false;
    if (daemon->quitting)
        refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED, "The daemon is quitting");
    else if (!daemon_serves(daemon, uid))
        refuse(
            client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
            "The daemon at %.200s serves user %u only, not user %u; start one of your own (funnel "
            "start) or have root run one for all users",
            daemon->paths.pipe, (unsigned)daemon->uid, (unsigned)uid);
    else if (error)
        refuse(client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
               "The control groups of the program cannot be read (%s), which decide on its server "
               "and its memory limit; start "
               "the program again",
               strerror(-error));
    else if (service && !service_serves(service, uid))
        refuse(client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
               "The server %s serves user %u only, not user %u", service->name,
               (unsigned)service->uid, (unsigned)uid);
    else {
        if (client->hello.window_base)
            log_return(client);
        find_routes(client);
        log_spare_lane(client);
        place_after_fault(client);
    }
}

/* The daemon's own user, who is its operator, is never delayed. */
static void delay_program(struct pending_client *client)
{
    static struct user_rate rate;
    const struct daemon *daemon = client->daemon;
    uint64_t a_second = daemon->quotas.value[QUOTA_ATTACHES];
    uid_t owner = client->identity.owner;

    rate.interval_ns = NS_PER_SEC / a_second;
    rate.burst = (unsigned)(ATTACH_BURST_S * a_second);
    uint64_t wait = owner == daemon->uid ? 0 : user_rate_charge(&rate, owner, clock_ns());

    peer_identity_complete(&client->identity, &client->hello);
    peer_group_find(&client->daemon->rules, client->connection.fd, &client->identity);
    if (wait == 0) {
        admit_program(client);
        return;
    }
    journal_with(
        LOG_EVENT(client->identity.pid, 0),
        "Client %d of user %u waits: more than %llu programs a second of this user connect",
        client->identity.pid, owner, (unsigned long long)a_second);
    delay(client, wait);
}

/* ---- front ends ---- */

/* The server of the program that the front end is about to become takes some tenths of a second to
 * start. Most programs need longer before they use it. What fails here will fail again, and be
 * reported, when the program says hello. The executable is not known yet. */
static void start_server_ahead(struct pending_client *client)
{
    struct daemon *daemon = client->daemon;
    int error = enter_namespace_of_group(client);
    const struct service *service = service_of(client);
    uid_t uid = client->identity.uid;
    struct server_process *server;

    if (error || daemon->quitting || !daemon_serves(daemon, uid) ||
        (service && !service_serves(service, uid)))
        return;
    find_routes(client);
    if (client->routes.is_of_program)
        return;
    if (!find_server(client) && !fault_drain_in_progress(daemon, client->routes.first.name))
        server_process_start(daemon, &client->routes.first, &server);
}

static void admit_front_end(struct pending_client *client)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC};
    struct daemon *daemon = client->daemon;
    uid_t uid = client->identity.uid;

    if (daemon->uid != 0 && uid != 0 && uid != daemon->uid) {
        refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED,
               "The daemon at %.200s takes commands from user %u and root only", daemon->paths.pipe,
               (unsigned)daemon->uid);
        return;
    }
    if (client->hello.kind == HELLO_AHEAD)
        start_server_ahead(client);
    if (!connection_send(&client->connection, &welcome, sizeof(welcome), -1))
        console_create(daemon, connection_release(&client->connection), client->identity.pid, uid);
    pending_client_free(client);
}

/* ---- hello ---- */

/* Connections of a user to the daemon, not counting those that a server has got. Beyond the quota
 * they are refused with a message, and beyond twice the quota without one. */
static bool has_more_connections_than(const struct daemon *daemon, uid_t owner, uint64_t limit)
{
    unsigned count = console_count(daemon, owner);

    list_for_each (struct pending_client, client, &daemon->pending_clients, link)
        count += client->identity.owner == owner;
    return owner != daemon->uid && count > limit;
}

static bool is_valid_hello(const struct hello *hello, size_t size)
{
    return size == sizeof(*hello) && hello->magic == HELLO_MAGIC &&
           hello->version == HELLO_VERSION && hello->kind >= HELLO_CLIENT &&
           hello->kind <= HELLO_AHEAD;
}

static void take_hello(struct pending_client *client, const struct hello *hello)
{
    client->hello = *hello;
    client->hello.group[sizeof(client->hello.group) - 1] = '\0';
    client->hello.sm_partition[sizeof(client->hello.sm_partition) - 1] = '\0';
    peer_program_look(client->connection.fd, hello, &client->identity, &client->program);
    if (client->hello.kind == HELLO_CLIENT)
        delay_program(client);
    else
        admit_front_end(client);
}

static void dispatch(struct pending_client *client, const void *data, size_t size)
{
    uint64_t most = client->daemon->quotas.value[QUOTA_CONNECTIONS];

    if (client->waiting || client->delayed) {
        journal_with(LOG_EVENT(client->identity.pid, 0),
                     "Client %d has sent a second message before it was welcomed; closing its "
                     "connection",
                     client->identity.pid);
        pending_client_free(client);
    } else if (!is_valid_hello(data, size)) {
        refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED,
               "This is funneld %s, and it does not understand the client's hello; use a client "
               "library and a daemon of the same release",
               FUNNEL_VERSION);
    } else if (has_more_connections_than(client->daemon, client->identity.owner, most)) {
        refuse(client, FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED,
               "User %u has more than %llu connections waiting at the daemon",
               client->identity.owner, (unsigned long long)most);
    } else {
        take_hello(client, data);
    }
}

static void on_message(void *owner, const void *data, size_t size)
{
    struct pending_client *client = owner;
    uid_t before = journal_account(client->identity.owner);

    dispatch(client, data, size);
    journal_account(before);
}

static void on_closed(void *owner)
{
    pending_client_free(owner);
}

static const struct connection_handlers pending_client_handlers = {on_message, on_closed};

/* ---- accepting ---- */

/* Takes `fd`. NULL when there is none any more. */
static struct pending_client *add_connection(struct daemon *daemon, int fd,
                                             struct mps_namespace *space)
{
    struct pending_client *client = calloc(1, sizeof(*client));
    pid_t pid = 0;
    uid_t uid = 0;
    gid_t gid = 0;

    if (!client || sock_peer(fd, &pid, &uid, &gid)) {
        fd_close(&fd);
        free(client);
        return NULL;
    }
    client->daemon = daemon;
    client->space = space;
    client->identity.pid = pid;
    client->identity.uid = uid;
    client->identity.gid = gid;
    client->identity.owner = user_owner(uid);
    client->deadline = evtimer_new(daemon->base, on_deadline, client);
    list_append(&daemon->pending_clients, &client->link);
    if (connection_open(&client->connection, daemon->base, fd, &pending_client_handlers, client) ||
        !client->deadline ||
        has_more_connections_than(daemon, client->identity.owner,
                                  2 * daemon->quotas.value[QUOTA_CONNECTIONS])) {
        pending_client_free(client);
        return NULL;
    }
    set_deadline(client, HELLO_TIMEOUT_S);
    return client;
}

/* Without descriptors the connections wait in the kernel's queue until some are free again. */
static void pause_accepting(struct daemon *daemon, int error)
{
    struct timeval pause = {.tv_usec = 100000};

    journal("Cannot accept connections: %s", strerror(-error));
    services_listen(daemon, false);
    evtimer_add(daemon->accept_pause, &pause);
}

void pending_client_end_pause(evutil_socket_t fd, short what, void *daemon)
{
    services_listen(daemon, true);
}

void pending_client_accept(struct daemon *daemon, int listen_fd, struct mps_namespace *space)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = -1;
        int error = sock_accept(listen_fd, &fd);

        if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
            pause_accepting(daemon, error);
        if (error)
            return;
        add_connection(daemon, fd, space);
    }
}

/* ---- over a reload ---- */

int pending_clients_leave(const struct daemon *daemon, struct list *left)
{
    int error = 0;

    list_for_each (struct pending_client, client, &daemon->pending_clients, link) {
        bool has_said_hello = client->waiting || client->delayed;

        if (!error)
            error = inherited_add(left, INHERITED_CLIENT, client->connection.fd,
                                  client->space ? client->space->directory : "", &client->hello,
                                  has_said_hello ? sizeof(client->hello) : 0);
    }
    return error;
}

void pending_client_inherit(struct daemon *daemon, int fd, struct mps_namespace *space,
                            const void *hello, size_t size)
{
    struct pending_client *client = add_connection(daemon, fd, space);

    if (client && size)
        dispatch(client, hello, size);
}

/* ---- what happens to servers and namespaces ---- */

static bool waits_for(const struct pending_client *client, const char *name)
{
    return client->waiting && !strcmp(client->routes.first.name, name);
}

void pending_client_server_ready(struct server_process *server)
{
    list_for_each_safe (struct pending_client, client, &server->daemon->pending_clients, link)
        if (waits_for(client, server->name))
            hand_over(client, server);
}

void pending_client_refuse_waiting(struct daemon *daemon, const char *name, int status,
                                   const char *text)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link)
        if (waits_for(client, name) && client_routes_change(daemon, &client->routes))
            place(client);
        else if (waits_for(client, name))
            refuse(client, status, "%s", text);
}

void pending_client_server_gone(struct daemon *daemon, const char *name)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link) {
        if (!waits_for(client, name))
            continue;
        if (daemon->quitting)
            refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED, "The daemon is quitting");
        else
            place_after_fault(client);
    }
}

void pending_client_close_namespace(struct daemon *daemon, const struct mps_namespace *space)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link) {
        if (client->space != space)
            continue;
        if (client->waiting)
            refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED, "Its server has been deleted");
        else
            pending_client_free(client);
    }
}

void pending_client_close_all(struct daemon *daemon)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link)
        pending_client_free(client);
}
