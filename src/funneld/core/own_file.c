/* SPDX-License-Identifier: Apache-2.0 */
/* See own_file.h. */
#include "own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

int own_file_check(int fd)
{
    struct stat status;

    if (fstat(fd, &status))
        return -errno;
    return S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
                   !(status.st_mode & (S_IRWXG | S_IRWXO))
               ? 0
               : -EPERM;
}

static int write_new(const char *path, const void *data, size_t size)
{
    _cleanup_fd_ int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

    return fd < 0 ? -errno : write_all(fd, data, size);
}

int own_file_replace(const char *path, const void *data, size_t size)
{
    char next[PATH_MAX];

    if (!text_format(next, sizeof(next), "%s.new", path))
        return -ENAMETOOLONG;
    unlink(next);
    return fd_put_in_place(AT_FDCWD, next, path, write_new(next, data, size));
}

static int read_checked(int fd, size_t most, char **ret_text, size_t *ret_size)
{
    struct stat status;
    char *text;
    int error = own_file_check(fd);

    if (error || fstat(fd, &status))
        return error ? error : -errno;
    if (status.st_size < 0 || (size_t)status.st_size > most)
        return -EFBIG;
    text = malloc((size_t)status.st_size + 1);
    if (!text)
        return -ENOMEM;
    error = read_all(fd, text, (size_t)status.st_size);
    if (error) {
        free(text);
        return error;
    }
    text[status.st_size] = '\0';
    *ret_text = text;
    *ret_size = (size_t)status.st_size;
    return 0;
}

int own_file_read(const char *path, size_t most, char **ret_text, size_t *ret_size)
{
    /* The daemon must not wait for a pipe, or anything else that is no file. */
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    return fd < 0 ? -errno : read_checked(fd, most, ret_text, ret_size);
}
