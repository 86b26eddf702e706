/* SPDX-License-Identifier: Apache-2.0 */
/* See append_file.h. */
#include "append_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"

/* 0 or -errno; then the file is as it was. */
static int write_whole(int fd, const void *data, size_t size, off_t before)
{
    ssize_t written = write(fd, data, size);

    if (written == (ssize_t)size)
        return 0;
    int error = written < 0 ? -errno : -ENOSPC;
    if (written > 0 && ftruncate(fd, before))
        error = -errno;
    return error;
}

int append_file(const char *path, mode_t mode, const void *data, size_t size)
{
    _cleanup_fd_ int fd =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, mode);
    struct stat status;

    if (fd < 0 || fstat(fd, &status))
        return -errno;
    return S_ISREG(status.st_mode) ? write_whole(fd, data, size, status.st_size) : -EINVAL;
}
