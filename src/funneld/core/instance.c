/* SPDX-License-Identifier: Apache-2.0 */
/* See instance.h. */
#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "inherited.h"
#include "sock.h"
#include "text.h"

#define CHOOSE_ANOTHER \
    "; choose another directory with CUDA_MPS_PIPE_DIRECTORY or CUDA_MPS_LOG_DIRECTORY"

/* ---- directories ---- */

__attribute__((format(printf, 3, 4))) static int set_reason(char *reason, int error,
                                                            const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, INSTANCE_REASON_MAX, format, arguments);
    va_end(arguments);
    return error;
}

static int make_one(const char *path, mode_t mode)
{
    return mkdir(path, mode) && errno != EEXIST ? -errno : 0;
}

/* mkdir -p. Only the last directory gets `mode`; all users can pass through those above it. */
static int make_directories(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    int error = 0;

    for (const char *slash = strchr(path + 1, '/'); slash && !error;
         slash = strchr(slash + 1, '/')) {
        text_format(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (access(part, F_OK))
            error = make_one(part, 0755);
    }
    return error ? error : make_one(path, mode);
}

/* The owner of a directory, or of a link to it, could replace the socket and the log in it. */
static int check_directory(const char *path, char *reason)
{
    struct stat link, target;

    if (lstat(path, &link) || stat(path, &target))
        return set_reason(reason, -errno, "Cannot use %s: %s" CHOOSE_ANOTHER, path,
                          strerror(errno));
    if (!S_ISDIR(target.st_mode))
        return set_reason(reason, -ENOTDIR, "%s is not a directory" CHOOSE_ANOTHER, path);
    if (link.st_uid != geteuid() || target.st_uid != geteuid())
        return set_reason(
            reason, -EPERM,
            "%s belongs to user %u, not to user %u who starts the daemon" CHOOSE_ANOTHER, path,
            (unsigned)target.st_uid, (unsigned)geteuid());
    if (target.st_mode & S_IWOTH)
        return set_reason(
            reason, -EPERM,
            "All users may write to %s and replace the files in it; run: chmod o-w %s", path, path);
    return 0;
}

static int open_directory(const char *path, mode_t mode, char *reason)
{
    int error = make_directories(path, mode);

    if (error)
        return set_reason(reason, error, "Cannot make the directory %s: %s" CHOOSE_ANOTHER, path,
                          strerror(-error));
    error = check_directory(path, reason);
    if (!error && access(path, W_OK | X_OK))
        return set_reason(reason, -errno, "Cannot write to %s: %s" CHOOSE_ANOTHER, path,
                          strerror(errno));
    return error;
}

static int open_inner(const struct paths *paths, const char *name, mode_t mode, char *reason)
{
    char path[PATH_MAX];
    int error = path_join(paths->pipe, name, path, sizeof(path));

    return error ? error : open_directory(path, mode, reason);
}

/* Root's daemon serves all users, so all users need access to its socket. */
static int open_directories(const struct paths *paths, char *reason)
{
    mode_t mode = geteuid() == 0 ? 0755 : 0700;
    int error = open_directory(paths->pipe, mode, reason);

    if (!error)
        error = open_directory(paths->log, mode, reason);
    if (!error)
        error = open_inner(paths, INSTANCE_EMPTY_NAME, 0755, reason);
    if (!error)
        error = open_inner(paths, INSTANCE_SERVERS_NAME, 0700, reason);
    return error;
}

/* ---- lock and socket ---- */

static int take_lock(struct instance *instance, char *reason)
{
    char path[PATH_MAX];
    _cleanup_fd_ int fd = -1;
    int error = path_join(instance->paths->pipe, INSTANCE_LOCK_NAME, path, sizeof(path));

    if (error)
        return set_reason(reason, error, "%s is too long", instance->paths->pipe);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return set_reason(reason, -errno, "Cannot open %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK)
            return set_reason(reason, -EEXIST, "An instance of this daemon is already running");
        return set_reason(reason, -errno, "Cannot lock %s: %s", path, strerror(errno));
    }
    instance->lock_fd = fd_steal(&fd);
    return 0;
}

/* NVIDIA's daemon does not know our lock; its socket answers while it lives. */
static int check_no_other_mps(const struct instance *instance, char *reason)
{
    char path[PATH_MAX];
    _cleanup_fd_ int fd = -1;

    if (path_join(instance->paths->pipe, "control", path, sizeof(path)) || sock_connect(path, &fd))
        return 0;
    return set_reason(
        reason, -EEXIST,
        "NVIDIA's MPS daemon runs in %s; stop it (echo quit | nvidia-cuda-mps-control) or "
        "choose another CUDA_MPS_PIPE_DIRECTORY",
        instance->paths->pipe);
}

static int listen_for_programs(struct instance *instance, char *reason)
{
    int error = sock_listen(instance->paths->socket, 0666, &instance->listen_fd);

    if (error)
        return set_reason(reason, error, "Cannot listen at %s: %s", instance->paths->socket,
                          strerror(-error));
    return 0;
}

static int begin_instance(struct instance *instance, char *reason)
{
    int error = take_lock(instance, reason);

    if (!error)
        error = check_no_other_mps(instance, reason);
    return error ? error : listen_for_programs(instance, reason);
}

/* They have been open since the daemon started: no program finds the socket closed. */
static int inherit(struct instance *instance, char *reason)
{
    instance->lock_fd = inherited_take(INHERITED_LOCK, "");
    instance->listen_fd = inherited_take(INHERITED_LISTENER, instance->paths->socket);
    return instance->lock_fd >= 0 && instance->listen_fd >= 0
               ? 0
               : set_reason(reason, -EBADF, "The daemon before has left no lock or no socket");
}

int instance_open(struct instance *instance, const struct paths *paths,
                  char ret_reason[INSTANCE_REASON_MAX])
{
    int error = 0;

    *instance = (struct instance){.paths = paths, .lock_fd = -1, .listen_fd = -1};
    if (strlen(paths->pipe) > paths_pipe_max())
        return set_reason(
            ret_reason, -ENAMETOOLONG,
            "The pipe directory %s is %zu bytes long, and a socket's address holds %zu; "
            "set CUDA_MPS_PIPE_DIRECTORY to a shorter one",
            paths->pipe, strlen(paths->pipe), paths_pipe_max());
    error = open_directories(paths, ret_reason);
    if (!error)
        error = inherited_exists() ? inherit(instance, ret_reason)
                                   : begin_instance(instance, ret_reason);
    if (error) {
        fd_close(&instance->lock_fd);
        fd_close(&instance->listen_fd);
    }
    return error;
}

static int pid_path(const struct instance *instance, char path[PATH_MAX])
{
    return path_join(instance->paths->pipe, INSTANCE_PID_NAME, path, PATH_MAX);
}

int instance_write_pid(const struct instance *instance)
{
    char path[PATH_MAX], text[16];
    _cleanup_fd_ int fd = -1;
    int error = pid_path(instance, path);

    if (error)
        return error;
    /* A stale file may be a link, so it is removed and not written to. */
    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    text_format(text, sizeof(text), "%d\n", (int)getpid());
    return write_all(fd, text, strlen(text));
}

void instance_close(struct instance *instance)
{
    char path[PATH_MAX];

    if (instance->lock_fd < 0)
        return;
    unlink(instance->paths->socket);
    if (!pid_path(instance, path))
        unlink(path);
    fd_close(&instance->listen_fd);
    fd_close(&instance->lock_fd);
}
