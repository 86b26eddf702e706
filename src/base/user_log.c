/* SPDX-License-Identifier: Apache-2.0 */
/* See user_log.h. */
#include "user_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "log.h"
#include "text.h"

int user_log_path(char *ret_path, size_t capacity)
{
    const char *state = secure_getenv("XDG_STATE_HOME"), *home = secure_getenv("HOME");
    unsigned user = (unsigned)geteuid();
    bool fits;

    if (getuid() != geteuid())
        return -EPERM;
    if (state && *state == '/')
        fits = text_format(ret_path, capacity, "%s/funnel/client.log", state);
    else if (home && *home == '/' && access(home, W_OK) == 0)
        fits = text_format(ret_path, capacity, "%s/.local/state/funnel/client.log", home);
    else
        fits = text_format(ret_path, capacity, "/tmp/funnel-%u/client.log", user);
    return fits ? 0 : -ENAMETOOLONG;
}

/* mkdir -p for all before the last part, for this user alone. The open of the log notices a
 * failure. */
static void make_directories(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
        if (text_format(part, sizeof(part), "%.*s", (int)(slash - path), path))
            mkdir(part, 0700);
}

/* /tmp is everybody's, so another user may have made the directory there first. */
static int check_directory(const char *path)
{
    char directory[PATH_MAX];
    struct stat status;
    const char *slash = strrchr(path, '/');

    if (!slash || !text_format(directory, sizeof(directory), "%.*s", (int)(slash - path), path))
        return -ENAMETOOLONG;
    if (lstat(directory, &status))
        return -errno;
    return S_ISDIR(status.st_mode) && status.st_uid == geteuid() ? 0 : -EPERM;
}

static int open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600);

    return fd < 0 ? -errno : fd;
}

static bool is_full(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_size > (off_t)USER_LOG_SIZE_MAX;
}

int user_log_open(const char *path)
{
    char old[PATH_MAX];
    int error, fd;

    make_directories(path);
    error = check_directory(path);
    fd = error ? error : open_file(path);
    if (fd < 0 || !is_full(fd) || !text_format(old, sizeof(old), "%s.1", path) || rename(path, old))
        return fd;
    fd_close(&fd);
    return open_file(path);
}

void user_log_line(const char *path, int error, const char *text)
{
    static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&file_lock);
    _cleanup_fd_ int fd = user_log_open(path);

    if (fd < 0)
        return;
    log_open(fd, "Client");
    log_with(LOG_EVENT(getpid(), error), "%s", text);
    log_open(-1, "Client");
}
