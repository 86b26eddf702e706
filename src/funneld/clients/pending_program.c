/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_program.h. */
#include "pending_program.h"

#include <errno.h>
#include <string.h>

#include "client_record.h"
#include "clock.h"
#include "fault_drain.h"
#include "funnel_errors.h"
#include "journal.h"
#include "lane_name.h"
#include "peer_group.h"
#include "pending_client_state.h"
#include "replacement.h"
#include "server_process.h"
#include "server_start.h"
#include "service.h"
#include "user_rate.h"

#define STOPPING_TIMEOUT_S 15 /* how long a program waits for a server that ends */

#define ATTACH_BURST_S 10u        /* as many may come at once */
#define START_PAUSE_NS NS_PER_SEC /* before a start that came too early is tried again */

/* How long a program waits until a server has noticed the end of its last program, and how often it
 * is looked after. */
#define EMPTYING_TIMEOUT_NS (2 * NS_PER_SEC)
#define EMPTYING_PAUSE_NS (5 * NS_PER_MS)

static void set_waiting(struct pending_client *client, bool waiting)
{
    client->daemon->waiting_clients += waiting - client->waiting;
    client->waiting = waiting;
}

/* ---- the way to a server ---- */

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
        pending_client_set_deadline(client, STOPPING_TIMEOUT_S);
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

    pending_client_refuse(client,
                          is_full ? FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED
                                  : FUNNEL_ERROR_MPS_CONNECTION_FAILED,
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
        pending_client_refuse(
            client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
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

void pending_program_admit(struct pending_client *client)
{
    const struct daemon *daemon = client->daemon;
    int error = enter_namespace_of_group(client);
    const struct service *service = service_of(client);
    uid_t uid = client->identity.uid;

    client->delayed = false;
    if (daemon->quitting)
        pending_client_refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED, "The daemon is quitting");
    else if (!daemon_serves(daemon, uid))
        pending_client_refuse(
            client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
            "The daemon at %.200s serves user %u only, not user %u; start one of your own (funnel "
            "start) or have root run one for all users",
            daemon->paths.pipe, (unsigned)daemon->uid, (unsigned)uid);
    else if (error)
        pending_client_refuse(
            client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
            "The control groups of the program cannot be read (%s), which decide on its server "
            "and its memory limit; start "
            "the program again",
            strerror(-error));
    else if (service && !service_serves(service, uid))
        pending_client_refuse(client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
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
void pending_program_greet(struct pending_client *client)
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
        pending_program_admit(client);
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
void pending_program_expect(struct pending_client *client)
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

/* ---- what happens to servers ---- */

static bool waits_for(const struct pending_client *client, const char *name)
{
    return client->waiting && !strcmp(client->routes.first.name, name);
}

void pending_programs_server_ready(struct server_process *server)
{
    list_for_each_safe (struct pending_client, client, &server->daemon->pending_clients, link)
        if (waits_for(client, server->name))
            hand_over(client, server);
}

void pending_programs_refuse(struct daemon *daemon, const char *name, int status, const char *text)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link)
        if (waits_for(client, name) && client_routes_change(daemon, &client->routes))
            place(client);
        else if (waits_for(client, name))
            pending_client_refuse(client, status, "%s", text);
}

void pending_programs_server_gone(struct daemon *daemon, const char *name)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link) {
        if (!waits_for(client, name))
            continue;
        if (daemon->quitting)
            pending_client_refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED,
                                  "The daemon is quitting");
        else
            place_after_fault(client);
    }
}
