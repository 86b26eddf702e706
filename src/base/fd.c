/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: calls that finish in spite of signals. */
#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void fd_close(int *fd)
{
    if (*fd < 0)
        return;
    int saved_errno = errno;
    close(fd_steal(fd));
    errno = saved_errno;
}

int fd_open_log(const char *variable)
{
    const char *path = secure_getenv(variable);

    if (!path || !*path)
        return -1;
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
}

int fd_create_anew(int directory, const char *name)
{
    if (unlinkat(directory, name, 0) && errno != ENOENT)
        return -1;
    return openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

int fd_put_in_place(int directory, const char *temporary, const char *name, int error)
{
    if (!error && renameat(directory, temporary, directory, name))
        error = -errno;
    if (error)
        unlinkat(directory, temporary, 0);
    return error;
}

int fd_set_cloexec(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0)
        return -errno;
    return 0;
}

int write_all(int fd, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        ssize_t written = write(fd, next, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        next += written;
        size -= (size_t)written;
    }
    return 0;
}

int read_all(int fd, void *data, size_t size)
{
    char *next = data;
    while (size > 0) {
        ssize_t got = read(fd, next, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENODATA;
        next += got;
        size -= (size_t)got;
    }
    return 0;
}

int pread_all(int fd, void *data, size_t size, off_t offset)
{
    char *next = data;
    while (size > 0) {
        ssize_t got = pread(fd, next, size, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENODATA;
        next += got;
        offset += got;
        size -= (size_t)got;
    }
    return 0;
}
