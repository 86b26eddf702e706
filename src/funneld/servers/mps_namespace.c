/* SPDX-License-Identifier: Apache-2.0 */
/* See mps_namespace.h. */
#include "mps_namespace.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "hello.h"
#include "inherited.h"
#include "service.h"
#include "sock.h"
#include "text.h"

#define REASON_MAX GRAMMAR_REASON_MAX

/* ---- names ---- */

/* Names of other files in a pipe directory. */
bool service_name_is_reserved(const char *name)
{
    static const char *const reserved[] = {HELLO_SOCKET_NAME, "log", INSTANCE_EMPTY_NAME,
                                           "control"};

    for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
        if (!strcmp(name, reserved[i]))
            return true;
    return false;
}

bool service_name_is_lower_case(const char *name)
{
    return grammar_is_name(name) && strlen(name) <= 64 &&
           !strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

int service_name_check(const char *name, char ret_reason[REASON_MAX])
{
    if (service_name_is_lower_case(name) && !service_name_is_reserved(name))
        return 0;
    text_format(
        ret_reason, REASON_MAX,
        service_name_is_reserved(name)
            ? "The name '%.64s' is taken by a file of the daemon"
            : "'%.64s' is not a valid name, which has up to 64 lower-case letters, digits and _",
        name);
    return -EINVAL;
}

/* ---- sockets ---- */

static int report_listen_error(const struct mps_namespace *space, int error, char *reason)
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

static int open_socket(struct mps_namespace *space, char *reason)
{
    char path[PATH_MAX];
    _cleanup_fd_ int other = -1;
    int error = make_directory(space->directory);

    if (!error)
        error = socket_path(space, path);
    if (!error)
        space->listen_fd = inherited_take(INHERITED_LISTENER, path);
    if (!error && space->listen_fd < 0 && !sock_connect(path, &other))
        error = -EADDRINUSE;
    if (!error && space->listen_fd < 0)
        error = sock_listen(path, 0666, &space->listen_fd);
    if (error)
        return report_listen_error(space, error, reason);
    evutil_make_socket_nonblocking(space->listen_fd);
    return 0;
}

/* A directory that holds other files is not empty, and stays. */
static void close_socket(struct mps_namespace *space)
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

static void on_connection(evutil_socket_t fd, short what, void *context)
{
    struct mps_namespace *space = context;
    struct daemon *daemon = space->service->daemon;

    daemon->events->connection(daemon, fd, space);
}

int namespace_listen(struct mps_namespace *space)
{
    struct event_base *base = space->service->daemon->base;

    if (!base)
        return 0;
    if (!space->acceptor)
        space->acceptor =
            event_new(base, space->listen_fd, EV_READ | EV_PERSIST, on_connection, space);
    return space->acceptor && !event_add(space->acceptor, NULL) ? 0 : -ENOMEM;
}

/* ---- namespaces ---- */

void namespace_destroy(struct mps_namespace *space)
{
    struct daemon *daemon = space->service->daemon;

    if (daemon->events)
        daemon->events->namespace_closed(daemon, space);
    list_remove(&space->link);
    close_socket(space);
    free(space);
}

/* The default one listens in the server's directory, the others in one below it. */
static int choose_directory(struct mps_namespace *space, char *reason)
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

int namespace_add(struct service *service, const char *name, char ret_reason[REASON_MAX])
{
    struct mps_namespace *space = calloc(1, sizeof(*space));
    int error;

    if (!space) {
        text_copy(ret_reason, REASON_MAX, "Out of memory");
        return -ENOMEM;
    }
    space->service = service;
    space->listen_fd = -1;
    space->cgroup_depth = GRAMMAR_LEVELS_ALL;
    text_copy(space->name, sizeof(space->name), name);
    list_append(&service->namespaces, &space->link);
    error = choose_directory(space, ret_reason);
    if (!error && !service->daemon->is_trial)
        error = open_socket(space, ret_reason);
    if (!error) {
        error = namespace_listen(space);
        if (error)
            report_listen_error(space, error, ret_reason);
    }
    if (error)
        namespace_destroy(space);
    return error;
}

int namespace_create(struct service *service, const char *name, char ret_reason[REASON_MAX])
{
    unsigned count = 0;
    int error = service_name_check(name, ret_reason);

    list_for_each (struct mps_namespace, space, &service->namespaces, link)
        count++;
    if (!error && service_namespace(service, name)) {
        text_format(ret_reason, REASON_MAX, "Namespace '%.64s' exists already", name);
        return -EEXIST;
    }
    if (!error && count == NAMESPACES_MAX) {
        text_format(ret_reason, REASON_MAX, "A server has no more than %d namespaces",
                    NAMESPACES_MAX);
        return -ENOSPC;
    }
    return error ? error : namespace_add(service, name, ret_reason);
}

void namespace_set(struct mps_namespace *space, const struct grammar_values *values)
{
    struct limit_change *change = &space->change;

    if (grammar_given(values, GRAMMAR_SHARE))
        change->sm_centipercent = values->centipercent;
    if (grammar_given(values, GRAMMAR_PRIORITY)) {
        change->sets_priority = true;
        change->priority = values->priority;
    }
    if (grammar_given(values, GRAMMAR_CGROUP))
        text_copy(space->cgroup, sizeof(space->cgroup), values->cgroup);
    if (grammar_given(values, GRAMMAR_LEVELS))
        space->cgroup_depth = values->levels;
    if (grammar_given(values, GRAMMAR_SHOWN)) {
        change->sets_totals = true;
        change->totals_show_limit = values->shown;
    }
    if (grammar_given(values, GRAMMAR_LENT)) {
        change->sets_lend = true;
        change->lend = values->lent;
    }
    if (grammar_given(values, GRAMMAR_OVERSUBSCRIBED)) {
        change->sets_oversubscribe = true;
        change->oversubscribe = values->oversubscribed;
    }
    if (grammar_given(values, GRAMMAR_IDLE)) {
        change->sets_evict_after = true;
        change->evict_after = values->idle;
    }
    if (grammar_given(values, GRAMMAR_CLASS))
        change->class = values->class;
    if (grammar_given(values, GRAMMAR_SIZE)) {
        change->sets_memory = true;
        change->memory = values->memory;
        text_copy(space->memory_text, sizeof(space->memory_text), values->memory_text);
    }
}
