/* SPDX-License-Identifier: Apache-2.0 */
/* See service.h. */
#include "service.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "hello.h"
#include "journal.h"
#include "sock.h"
#include "text.h"
#include "user_owner.h"

#define REASON_MAX GRAMMAR_REASON_MAX

/* ---- owners ---- */

static void name_of_user(uid_t uid, char name[SERVER_NAME_MAX])
{
    text_format(name, SERVER_NAME_MAX, "uid_%u", (unsigned)uid);
}

/* uid_N is the server of user N, and of no other user. */
static int check_owner(const struct daemon *daemon, const char *name, uid_t uid, char *reason)
{
    char expected[SERVER_NAME_MAX];

    name_of_user(uid, expected);
    if (daemon->uid != 0 && uid != daemon->uid)
        text_format(reason, REASON_MAX,
                    "This daemon runs as user %u and cannot start a server for user %u",
                    (unsigned)daemon->uid, (unsigned)uid);
    else if (daemon->multiuser && uid != daemon->server_uid)
        text_format(reason, REASON_MAX, "With one server for all users, --uid=%u is the only one",
                    (unsigned)daemon->server_uid);
    else if (text_starts_with(name, "uid_") && strcmp(name, expected))
        text_format(reason, REASON_MAX, "The server of user %u is called %s, not %.64s",
                    (unsigned)uid, expected, name);
    else
        return 0;
    return -EPERM;
}

/* ---- services ---- */

static unsigned count_services(const struct daemon *daemon)
{
    unsigned count = 0;

    list_for_each (struct service, service, &daemon->services, link)
        count++;
    return count;
}

static int check_new(const struct daemon *daemon, const char *name, uid_t uid, char *reason)
{
    int error = service_name_check(name, reason);

    if (!error)
        error = check_owner(daemon, name, uid, reason);
    if (!error && service_find(daemon, name)) {
        text_format(reason, REASON_MAX, "Server '%.64s' exists already", name);
        return -EEXIST;
    }
    if (!error && count_services(daemon) == SERVICES_MAX) {
        text_format(reason, REASON_MAX, "There can be no more than %d servers", SERVICES_MAX);
        return -ENOSPC;
    }
    return error;
}

int service_create(struct daemon *daemon, const char *name, uid_t uid, const char *devices,
                   struct service **ret_service, char ret_reason[GRAMMAR_REASON_MAX])
{
    char of_user[SERVER_NAME_MAX];
    struct service *service;
    int error;

    name_of_user(uid, of_user);
    name = *name ? name : of_user;
    error = check_new(daemon, name, uid, ret_reason);
    if (error)
        return error;
    service = calloc(1, sizeof(*service));
    if (!service) {
        text_copy(ret_reason, REASON_MAX, "Out of memory");
        return -ENOMEM;
    }
    service->daemon = daemon;
    service->uid = uid;
    service->partitions.version3 = true;
    list_init(&service->namespaces);
    text_copy(service->name, sizeof(service->name), name);
    text_copy(service->devices, sizeof(service->devices), devices);
    list_append(&daemon->services, &service->link);
    error = namespace_add(service, NAMESPACE_DEFAULT, ret_reason);
    if (error)
        service_destroy(service);
    else
        *ret_service = service;
    return error;
}

void service_destroy(struct service *service)
{
    /* The default one goes last: its directory holds those of the others. */
    while (!list_empty(&service->namespaces))
        namespace_destroy(container_of(service->namespaces.prev, struct mps_namespace, link));
    list_remove(&service->link);
    free(service);
}

int service_set_owner(struct service *service, uid_t uid, char ret_reason[GRAMMAR_REASON_MAX])
{
    int error = check_owner(service->daemon, service->name, uid, ret_reason);

    if (!error)
        service->uid = uid;
    return error;
}

struct service *service_find(const struct daemon *daemon, const char *name)
{
    list_for_each (struct service, service, &daemon->services, link)
        if (!strcmp(service->name, name))
            return service;
    return NULL;
}

struct mps_namespace *service_namespace(const struct service *service, const char *name)
{
    list_for_each (struct mps_namespace, space, &service->namespaces, link)
        if (!strcmp(space->name, name))
            return space;
    return NULL;
}

const char *service_directory(const struct daemon *daemon, const char *name)
{
    const struct service *service = service_find(daemon, name);

    return service ? service_namespace(service, NAMESPACE_DEFAULT)->directory : daemon->paths.pipe;
}

struct server_route service_route(const struct service *service)
{
    struct server_route route = {
        .uid = service->uid, .gid = (gid_t)service->uid, .owner = user_owner(service->uid)};

    text_copy(route.name, sizeof(route.name), service->name);
    text_copy(route.devices, sizeof(route.devices), service->devices);
    return route;
}

struct server_route service_route_of_user(const struct daemon *daemon, uid_t uid, gid_t gid,
                                          struct mps_namespace **ret_space)
{
    struct server_route route = {.uid = uid, .gid = gid, .owner = user_owner(uid)};
    const struct service *service;

    name_of_user(uid, route.name);
    service = service_find(daemon, route.name);
    if (service)
        route = service_route(service);
    if (ret_space)
        *ret_space = service ? service_namespace(service, NAMESPACE_DEFAULT) : NULL;
    return route;
}

uint32_t service_isolation(const struct daemon *daemon, const struct mps_namespace *space)
{
    return space && space->service->isolation ? space->service->isolation : daemon->isolation;
}

bool service_serves(const struct service *service, uid_t uid)
{
    return service->daemon->multiuser || uid == service->uid;
}

/* ---- static partitions ---- */

struct static_partitions *service_partitions(struct daemon *daemon, const char *name)
{
    struct service *service = service_find(daemon, name);

    return service && service->partitions.on ? &service->partitions : &daemon->partitions;
}

bool service_needs_partitions(const struct service *service)
{
    list_for_each (struct mps_namespace, space, &service->namespaces, link)
        if (*space->partition)
            return true;
    return service->partitions.count > 0;
}

/* A server that may use some devices only does not tell what the devices of the daemon are. */
void service_server_ready(const struct server_process *server)
{
    struct service *service = service_find(server->daemon, server->service);
    unsigned failed = service ? static_partitions_begin(&service->partitions, &server->ready) : 0;

    if (failed)
        journal("Server %d: %u SM partition%s not fit on its devices; see sm-partition list",
                (int)server->pid, failed, failed == 1 ? " does" : "s do");
    if (!service || !*service->devices)
        static_partitions_begin(&server->daemon->partitions, &server->ready);
}

/* ---- all services ---- */

int services_listen(struct daemon *daemon, bool on)
{
    int error = on ? event_add(daemon->acceptor, NULL) : event_del(daemon->acceptor);

    list_for_each (struct service, service, &daemon->services, link) {
        list_for_each (struct mps_namespace, space, &service->namespaces, link) {
            if (on)
                error |= namespace_listen(space);
            else if (space->acceptor)
                event_del(space->acceptor);
        }
    }
    return error ? -ENOMEM : 0;
}

void services_close(struct daemon *daemon)
{
    list_for_each_safe (struct service, service, &daemon->services, link)
        service_destroy(service);
}

/* Calls `each` for the directories in `path` that may be those of servers or namespaces. */
static void visit_directories(const char *path, void (*each)(const char *path))
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char inner[PATH_MAX];

    while (directory && (entry = readdir(directory)))
        if (entry->d_type == DT_DIR && service_name_is_lower_case(entry->d_name) &&
            !service_name_is_reserved(entry->d_name) &&
            !path_join(path, entry->d_name, inner, sizeof(inner)))
            each(inner);
    if (directory)
        closedir(directory);
}

/* A socket that accepts a connection belongs to another daemon, whose pipe directory is inside this
 * one. */
static void sweep_namespace(const char *directory)
{
    _cleanup_fd_ int fd = -1;
    char path[PATH_MAX];

    if (path_join(directory, HELLO_SOCKET_NAME, path, sizeof(path)) ||
        sock_connect(path, &fd) != -ECONNREFUSED)
        return;
    unlink(path);
    rmdir(directory);
}

static void sweep_server(const char *directory)
{
    visit_directories(directory, sweep_namespace);
    sweep_namespace(directory);
}

void services_sweep(const char *pipe_directory)
{
    visit_directories(pipe_directory, sweep_server);
}
