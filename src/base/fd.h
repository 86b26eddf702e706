/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: closing them, and reading and writing all of something. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Closes *fd if it is not -1 and makes it -1. errno is preserved. */
void fd_close(int *fd);

/* `_cleanup_fd_ int fd = -1;` closes at the end of the scope; fd_steal() keeps it open. */
#define _cleanup_fd_ __attribute__((cleanup(fd_close)))

/* Gives the descriptor away: returns *fd and leaves -1 behind. */
static inline int fd_steal(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Opens the file that an environment variable names for appending, and creates it if need be. -1
 * when the variable is not set or empty, or when the file does not open. The caller owns the
 * descriptor. */
int fd_open_log(const char *variable);

/* Makes a file that only its owner may read and write, in place of what has that name. Nothing is
 * written through a link that another user has put there. -1 with errno. */
int fd_create_anew(int directory, const char *name);

/* The end of a file that was written under the name `temporary`. It takes the place of `name`, so
 * that a reader finds all of the old one or of the new one. It is removed when there was an `error`
 * so far, which is returned, or when the rename fails. 0 or -errno. AT_FDCWD: the names are paths.
 */
int fd_put_in_place(int directory, const char *temporary, const char *name, int error);

/* 0 or -errno. */
int fd_set_cloexec(int fd);

/* Writes all of `data`, however many calls it takes: 0 or -errno. */
int write_all(int fd, const void *data, size_t size);

/* Reads exactly `size` bytes: 0, -ENODATA when the file ends before that, or -errno. */
int read_all(int fd, void *data, size_t size);

/* read_all() at `offset`, which leaves the file position alone. */
int pread_all(int fd, void *data, size_t size, off_t offset);
