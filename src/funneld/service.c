/* SPDX-License-Identifier: Apache-2.0 */
/* See service.h. */
#include "service.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "hello.h"
#include "journal.h"
#include "newcomer.h"
#include "sock.h"
#include "text.h"

#define REASON_MAX GRAMMAR_REASON_MAX

/* ---- names ---- */

/* What else lies in a pipe directory. */
static bool is_reserved(const char *name)
{
    static const char *const reserved[] = {HELLO_SOCKET_NAME, "log", INSTANCE_EMPTY_NAME,
                                           "control"};

    for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
        if (!strcmp(name, reserved[i]))
            return true;
    return false;
}

static bool is_lower_case_name(const char *name)
{
    return grammar_is_name(name) && strlen(name) <= 64 &&
           !strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

static int check_name(const char *name, char *reason)
{
    if (is_lower_case_name(name) && !is_reserved(name))
        return 0;
    text_format(reason, REASON_MAX,
                is_reserved(name)
                    ? "The name '%.64s' is taken by a file of the daemon"
                    : "'%.64s' is no name: up to 64 lower-case letters, digits and _ are",
                name);
    return -EINVAL;
}

static void name_of_user(uid_t uid, char name[SERVER_NAME_MAX])
{
    text_format(name, SERVER_NAME_MAX, "uid_%u", (unsigned)uid);
}

/* uid_N is the server of user N, and nobody else's. */
static int check_owner(const struct daemon *daemon, const char *name, uid_t uid, char *reason)
{
    char expected[SERVER_NAME_MAX];

    name_of_user(uid, expected);
    if (daemon->uid != 0 && uid != daemon->uid)
        text_format(reason, REASON_MAX,
                    "This daemon runs as user %u and cannot start a server for user %u",
                    (unsigned)daemon->uid, (unsigned)uid);
    else if (daemon->multiuser && uid != daemon->uid)
        text_format(reason, REASON_MAX, "With one server for all users, --uid=%u is the only one",
                    (unsigned)daemon->uid);
    else if (text_starts_with(name, "uid_") && strcmp(name, expected))
        text_format(reason, REASON_MAX, "The server of user %u is called %s, not %.64s",
                    (unsigned)uid, expected, name);
    else
        return 0;
    return -EPERM;
}

/* ---- sockets ---- */

static int explain(const struct mps_namespace *space, int error, char *reason)
{
    text_format(reason, REASON_MAX, "Cannot listen in %.108s: %s", space->directory,
                error == -EADDRINUSE ? "another daemon does" : strerror(-error));
    return error;
}

static int socket_path(const struct mps_namespace *space, char path[PATH_MAX])
{
    return path_join(space->directory, HELLO_SOCKET_NAME, path, PATH_MAX);
}

static int make_directory(const char *path)
{
    struct stat status;

    if (mkdir(path, geteuid() == 0 ? 0755 : 0700) && errno != EEXIST)
        return -errno;
    if (lstat(path, &status))
        return -errno;
    return S_ISDIR(status.st_mode) && status.st_uid == geteuid() ? 0 : -EPERM;
}

static int open_entrance(struct mps_namespace *space, char *reason)
{
    char path[PATH_MAX];
    _cleanup_fd_ int other = -1;
    int error = make_directory(space->directory);

    if (!error)
        error = socket_path(space, path);
    if (!error && !sock_connect(path, &other))
        error = -EADDRINUSE;
    if (!error)
        error = sock_listen(path, 0666, &space->listen_fd);
    if (error)
        return explain(space, error, reason);
    evutil_make_socket_nonblocking(space->listen_fd);
    return 0;
}

/* Only what we made is removed: a directory that holds something else stays. */
static void close_entrance(struct mps_namespace *space)
{
    char path[PATH_MAX];

    if (space->acceptor)
        event_free(space->acceptor);
    space->acceptor = NULL;
    if (space->listen_fd >= 0 && !socket_path(space, path)) {
        unlink(path);
        rmdir(space->directory);
    }
    fd_close(&space->listen_fd);
}

static void on_caller(evutil_socket_t fd, short what, void *context)
{
    struct mps_namespace *space = context;

    newcomer_accept(space->service->daemon, fd, space);
}

static int listen_at(struct mps_namespace *space)
{
    struct event_base *base = space->service->daemon->base;

    if (!base)
        return 0;
    if (!space->acceptor)
        space->acceptor = event_new(base, space->listen_fd, EV_READ | EV_PERSIST, on_caller, space);
    return space->acceptor && !event_add(space->acceptor, NULL) ? 0 : -ENOMEM;
}

/* ---- namespaces ---- */

void namespace_destroy(struct mps_namespace *space)
{
    newcomer_close_entrance(space->service->daemon, space);
    list_remove(&space->link);
    close_entrance(space);
    free(space);
}

/* The default one listens in the server's directory, the others in one below it. */
static int place_directory(struct mps_namespace *space, char *reason)
{
    const char *pipe = space->service->daemon->paths.pipe, *server = space->service->name;
    bool fits = !strcmp(space->name, NAMESPACE_DEFAULT)
                    ? text_format(space->directory, sizeof(space->directory), "%s/%s", pipe, server)
                    : text_format(space->directory, sizeof(space->directory), "%s/%s/%s", pipe,
                                  server, space->name);

    if (fits && strlen(space->directory) <= paths_pipe_max())
        return 0;
    text_format(reason, REASON_MAX,
                "The name is too long: a socket's address holds directories of %zu bytes, and this "
                "one would be below %.80s",
                paths_pipe_max(), pipe);
    return -ENAMETOOLONG;
}

static int add_namespace(struct service *service, const char *name, char *reason)
{
    struct mps_namespace *space = calloc(1, sizeof(*space));
    int error;

    if (!space) {
        text_copy(reason, REASON_MAX, "Out of memory");
        return -ENOMEM;
    }
    space->service = service;
    space->listen_fd = -1;
    text_copy(space->name, sizeof(space->name), name);
    list_append(&service->namespaces, &space->link);
    error = place_directory(space, reason);
    if (!error)
        error = open_entrance(space, reason);
    if (!error) {
        error = listen_at(space);
        if (error)
            explain(space, error, reason);
    }
    if (error)
        namespace_destroy(space);
    return error;
}

int namespace_create(struct service *service, const char *name, char ret_reason[REASON_MAX])
{
    unsigned count = 0;
    int error = check_name(name, ret_reason);

    list_for_each(struct mps_namespace, space, &service->namespaces, link) count++;
    if (!error && service_namespace(service, name)) {
        text_format(ret_reason, REASON_MAX, "Namespace '%.64s' exists already", name);
        return -EEXIST;
    }
    if (!error && count == NAMESPACES_MAX) {
        text_format(ret_reason, REASON_MAX, "A server has no more than %d namespaces",
                    NAMESPACES_MAX);
        return -ENOSPC;
    }
    return error ? error : add_namespace(service, name, ret_reason);
}

void namespace_set(struct mps_namespace *space, const struct grammar_values *values)
{
    struct limit_order *order = &space->order;

    if (grammar_given(values, GRAMMAR_PERCENT))
        order->sm_centipercent = values->centipercent;
    if (grammar_given(values, GRAMMAR_PRIORITY)) {
        order->sets_priority = true;
        order->priority = values->priority;
    }
    if (grammar_given(values, GRAMMAR_SIZE)) {
        order->sets_memory = true;
        order->memory = values->memory;
        text_copy(space->memory_text, sizeof(space->memory_text), values->memory_text);
    }
}

/* ---- services ---- */

static unsigned count_services(const struct daemon *daemon)
{
    unsigned count = 0;

    list_for_each(struct service, service, &daemon->services, link) count++;
    return count;
}

static int check(const struct daemon *daemon, const char *name, uid_t uid, char *reason)
{
    int error = check_name(name, reason);

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
    error = check(daemon, name, uid, ret_reason);
    if (error)
        return error;
    service = calloc(1, sizeof(*service));
    if (!service) {
        text_copy(ret_reason, REASON_MAX, "Out of memory");
        return -ENOMEM;
    }
    service->daemon = daemon;
    service->uid = uid;
    service->statics.version3 = true;
    list_init(&service->namespaces);
    text_copy(service->name, sizeof(service->name), name);
    text_copy(service->devices, sizeof(service->devices), devices);
    list_append(&daemon->services, &service->link);
    error = add_namespace(service, NAMESPACE_DEFAULT, ret_reason);
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
    list_for_each(struct service, service, &daemon->services,
                  link) if (!strcmp(service->name, name)) return service;
    return NULL;
}

struct mps_namespace *service_namespace(const struct service *service, const char *name)
{
    list_for_each(struct mps_namespace, space, &service->namespaces,
                  link) if (!strcmp(space->name, name)) return space;
    return NULL;
}

const char *service_directory(const struct daemon *daemon, const char *name)
{
    const struct service *service = service_find(daemon, name);

    return service ? service_namespace(service, NAMESPACE_DEFAULT)->directory : daemon->paths.pipe;
}

struct server_route service_route(const struct service *service)
{
    struct server_route route = {.uid = service->uid, .gid = (gid_t)service->uid};

    text_copy(route.name, sizeof(route.name), service->name);
    text_copy(route.devices, sizeof(route.devices), service->devices);
    return route;
}

struct server_route service_route_of_user(const struct daemon *daemon, uid_t uid, gid_t gid,
                                          struct mps_namespace **ret_entrance)
{
    struct server_route route = {.uid = uid, .gid = gid};
    const struct service *service;

    name_of_user(uid, route.name);
    service = service_find(daemon, route.name);
    if (service)
        route = service_route(service);
    if (ret_entrance)
        *ret_entrance = service ? service_namespace(service, NAMESPACE_DEFAULT) : NULL;
    return route;
}

bool service_serves(const struct service *service, uid_t uid)
{
    return service->daemon->multiuser || uid == service->uid;
}

/* ---- static partitions ---- */

struct statics *service_statics(struct daemon *daemon, const char *name)
{
    struct service *service = service_find(daemon, name);

    return service && service->statics.on ? &service->statics : &daemon->statics;
}

/* What a server may not use is no device of the daemon's. */
void service_server_ready(const struct server *server)
{
    struct service *service = service_find(server->daemon, server->name);
    unsigned failed = service ? statics_begin(&service->statics, &server->ready) : 0;

    if (failed)
        journal("Server %d: %u SM partitions find no room on its devices; see sm-partition list",
                (int)server->pid, failed);
    if (!service || !*service->devices)
        server->daemon->statics.devices = server->ready;
}

/* ---- all of them ---- */

int services_listen(struct daemon *daemon, bool on)
{
    int error = 0;

    list_for_each(struct service, service, &daemon->services, link)
    {
        list_for_each(struct mps_namespace, space, &service->namespaces, link)
        {
            if (on)
                error = listen_at(space) ? -ENOMEM : error;
            else if (space->acceptor)
                event_del(space->acceptor);
        }
    }
    return error;
}

void services_close(struct daemon *daemon)
{
    list_for_each_safe(struct service, service, &daemon->services, link) service_destroy(service);
}

/* Visits the directories in `path` that may be those of servers or namespaces. */
static void visit(const char *path, void (*each)(const char *path))
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char inner[PATH_MAX];

    while (directory && (entry = readdir(directory)))
        if (entry->d_type == DT_DIR && is_lower_case_name(entry->d_name) &&
            !is_reserved(entry->d_name) && !path_join(path, entry->d_name, inner, sizeof(inner)))
            each(inner);
    if (directory)
        closedir(directory);
}

/* A socket that answers is that of a daemon with a pipe directory inside of ours. */
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
    visit(directory, sweep_namespace);
    sweep_namespace(directory);
}

void services_sweep(const char *pipe_directory)
{
    visit(pipe_directory, sweep_server);
}
