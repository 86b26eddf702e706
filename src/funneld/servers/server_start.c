/* SPDX-License-Identifier: Apache-2.0 */
/* See server_start.h. */
#include "server_start.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "claim_table.h"
#include "clock.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "journal.h"
#include "lane_name.h"
#include "server_handlers.h"
#include "spawn.h"
#include "standby.h"
#include "text.h"
#include "user_rate.h"

#define START_TIMEOUT_S 120 /* many GPUs without persistence take their time */
#define STOP_TIMEOUT_S 10   /* from the end of its socket */

/* A server without a file cannot be taken over, and does its work. */
static void open_state(struct server_process *server, int *ret_listen_fd)
{
    int error = server_file_create(server, ret_listen_fd);

    if (error)
        journal("If this daemon is killed, the next one cannot take over the server %s: %s",
                server->name, strerror(-error));
}

static int spawn_for(struct server_process *server, const struct server_route *route, int *ret_fd)
{
    struct daemon *daemon = server->daemon;
    char program[PATH_MAX], empty[PATH_MAX];
    _cleanup_fd_ int log_fd = -1, listen_fd = -1;
    struct spawn spawn = {.program = program,
                          .device = daemon->device,
                          .spare = daemon->spare_lane_on && lane_name_is_main(server->name),
                          .batch = lane_name_is_batch(server->name),
                          .pipe_directory = empty,
                          .visible_devices = route->devices,
                          .uid = route->uid,
                          .gid = route->gid,
                          .state_fd = -1};
    int error = path_of_sibling("bin/funnel-server", program, sizeof(program));

    if (!error)
        error = path_join(daemon->paths.pipe, INSTANCE_EMPTY_NAME, empty, sizeof(empty));
    if (!error)
        open_state(server, &listen_fd);
    if (!error)
        error = server_log_open(server, &log_fd);
    spawn.log_fd = log_fd;
    spawn.listen_fd = listen_fd;
    spawn.state_fd = server->file.is_open ? server->file.fd : -1;
    spawn.claims_fd = claim_table_of(route->uid);
    if (!error && spawn.claims_fd < 0)
        error = spawn.claims_fd;
    return error ? error : spawn_server(&spawn, &server->pid, ret_fd);
}

/* It has no clients, not even one on its way to it. */
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

/* Programs ask for lanes, and without one they share the main lane. So lanes leave a quarter of all
 * servers to main lanes, without which programs of other users would be refused. */
static uint64_t most_servers(const struct daemon *daemon, const char *name)
{
    uint64_t most = daemon->quotas.value[QUOTA_SERVERS];

    return lane_name_is_main(name) ? most : most - most / 4;
}

/* 0; -EDQUOT, -EUSERS or -EAGAIN. The daemon's own user has all there is. */
static int may_serve(struct daemon *daemon, const struct server_route *route)
{
    const uint64_t *quotas = daemon->quotas.value;
    uid_t owner = route->owner;

    if (owner != daemon->uid && !make_room(daemon, &owner, quotas[QUOTA_USER_SERVERS]))
        return -EDQUOT;
    if (!make_room(daemon, NULL, most_servers(daemon, route->name)))
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
    int error = role == SERVER_STANDBY ? 0 : may_serve(daemon, route);

    *ret_server = role == SERVER_SERVING && !error ? standby_become_lane(daemon, route) : NULL;
    if (*ret_server)
        return 0;
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
    server->beside_another = server_process_find_ending(daemon, route->name) != NULL;
    server_process_set_deadline(server, error ? STOP_TIMEOUT_S : START_TIMEOUT_S);
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
    case -EMFILE:
        return "the daemon has no descriptor left. Its limit of open files is too "
               "low; " DESCRIPTORS_REMEDY;
    }
    return strerror(-error);
}

int server_process_start_another(const struct server_process *server, enum server_role role,
                                 struct server_process **ret_another)
{
    struct server_route route = {.uid = server->uid, .gid = server->gid, .owner = server->owner};

    text_copy(route.name, sizeof(route.name), server->name);
    text_copy(route.devices, sizeof(route.devices), server->devices);
    return start_process(server->daemon, &route, role, ret_another);
}
