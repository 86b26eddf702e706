/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon, the servers and the front ends all resolve their directories here, so they agree
 * without a configuration file.
 */
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "daemon_trust.h"
#include "fd.h"
#include "hello.h"
#include "text.h"

#define SYSTEM_PIPE "/run/funnel"
#define SYSTEM_LOG "/var/log/funnel"

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

int path_join(const char *directory, const char *name, char *ret_path, size_t capacity)
{
    char path[PATH_MAX];

    if (!text_format(path, sizeof(path), "%s/%s", directory, name))
        return -ENAMETOOLONG;
    return text_copy(ret_path, capacity, path) ? 0 : -ENAMETOOLONG;
}

static void strip_trailing_slashes(char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
}

/* The daemon and its servers have another working directory than the process that named it. */
static int make_absolute(const char *path, char *ret_path, size_t capacity)
{
    char cwd[PATH_MAX];
    int error = 0;

    if (*path == '/')
        error = text_copy(ret_path, capacity, path) ? 0 : -ENAMETOOLONG;
    else if (!getcwd(cwd, sizeof(cwd)))
        error = -errno;
    else
        error = path_join(cwd, path, ret_path, capacity);
    if (!error)
        strip_trailing_slashes(ret_path);
    return error;
}

/* `chosen` is NULL where no directory is named. */
static int resolve_pipe(const char *chosen, char *ret_path, size_t capacity)
{
    const char *runtime = environment("XDG_RUNTIME_DIR");
    char fallback[64];

    if (chosen)
        return make_absolute(chosen, ret_path, capacity);
    if (geteuid() == 0)
        return make_absolute(SYSTEM_PIPE, ret_path, capacity);
    if (runtime && *runtime == '/')
        return path_join(runtime, "funnel", ret_path, capacity);
    text_format(fallback, sizeof(fallback), "/tmp/funnel-%u", (unsigned)geteuid());
    return make_absolute(fallback, ret_path, capacity);
}

static int resolve_log(const char *pipe, char *ret_path, size_t capacity)
{
    const char *chosen = environment("CUDA_MPS_LOG_DIRECTORY");

    if (chosen)
        return make_absolute(chosen, ret_path, capacity);
    if (geteuid() == 0 && !environment("CUDA_MPS_PIPE_DIRECTORY"))
        return make_absolute(SYSTEM_LOG, ret_path, capacity);
    return path_join(pipe, "log", ret_path, capacity);
}

static int resolve_directory(const char *chosen, struct paths *ret_paths)
{
    struct paths paths;
    int error = resolve_pipe(chosen, paths.pipe, sizeof(paths.pipe));

    if (!error)
        error = resolve_log(paths.pipe, paths.log, sizeof(paths.log));
    if (!error)
        error = path_join(paths.pipe, HELLO_SOCKET_NAME, paths.socket, sizeof(paths.socket));
    if (!error)
        *ret_paths = paths;
    return error;
}

int paths_resolve(struct paths *ret_paths)
{
    const char *chosen = environment("CUDA_MPS_PIPE_DIRECTORY");

    return chosen && strchr(chosen, ':') ? -EINVAL : resolve_directory(chosen, ret_paths);
}

static bool daemon_listens(const struct paths *paths)
{
    _cleanup_fd_ int fd = -1;

    return daemon_connect_trusted(paths->socket, &fd) == 0;
}

/* The first of the directories in which a daemon listens, else the first. */
static int find_in_list(const char *list, struct paths *ret_paths)
{
    _cleanup_free_ char *copy = strdup(list);
    char *rest = NULL;
    struct paths paths;
    int error = copy ? -EINVAL : -ENOMEM;

    for (char *item = copy ? strtok_r(copy, ":", &rest) : NULL; item;
         item = strtok_r(NULL, ":", &rest)) {
        bool is_first = error != 0;

        error = resolve_directory(item, &paths);
        if (error)
            return error;
        if (is_first)
            *ret_paths = paths;
        if (daemon_listens(&paths)) {
            *ret_paths = paths;
            return 0;
        }
    }
    return error;
}

int paths_find_daemon(struct paths *ret_paths)
{
    const char *chosen = environment("CUDA_MPS_PIPE_DIRECTORY");
    struct paths roots = {SYSTEM_PIPE, SYSTEM_LOG, SYSTEM_PIPE "/" HELLO_SOCKET_NAME};
    int error;

    if (chosen && strchr(chosen, ':'))
        return find_in_list(chosen, ret_paths);
    error = resolve_directory(chosen, ret_paths);
    if (!error && !chosen && geteuid() != 0 && !daemon_listens(ret_paths) && daemon_listens(&roots))
        *ret_paths = roots;
    return error;
}

const char *paths_error_text(int error)
{
    if (error == -EINVAL)
        return "CUDA_MPS_PIPE_DIRECTORY names several directories, and a daemon has one";
    return error == -ENAMETOOLONG ? "The path of the pipe or log directory is too long"
                                  : strerror(-error);
}

size_t paths_pipe_max(void)
{
    return sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof("/" HELLO_SOCKET_NAME);
}

int path_of_sibling(const char *name, char *ret_path, size_t capacity)
{
    char root[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", root, sizeof(root) - 1);

    if (length < 0)
        return -errno;
    root[length] = '\0';
    /* Cut ".../bin/program" twice. */
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(root, '/');

        if (!slash)
            return -ENOENT;
        *slash = '\0';
    }
    return path_join(root, name, ret_path, capacity);
}
