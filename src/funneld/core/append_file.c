/* SPDX-License-Identifier: Apache-2.0 */
/* See append_file.h. */
#include "append_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>
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

/* As the kernel takes a list, which acl(5) describes: the owner, one user, group, mask, others. */
static int let_read(int fd, uid_t reader)
{
    static const uint32_t none = UINT32_MAX;
    const struct {
        uint32_t version;
        struct {
            uint16_t tag, permissions;
            uint32_t id;
        } entries[5];
    } list = {2, {{1, 6, none}, {2, 4, reader}, {4, 0, none}, {16, 4, none}, {32, 0, none}}};

    return fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0) ? -errno : 0;
}

/* The group's bits are the mask of the list. A file that has others is of an earlier release, or
 * new: without a list only its owner reads it. */
static void close_to_others(int fd, uid_t reader, mode_t mode)
{
    bool shared = reader != geteuid();

    if ((mode & 0777) == (shared ? 0640 : 0600))
        return;
    fchmod(fd, 0600);
    if (shared)
        let_read(fd, reader);
}

int append_file(const char *path, uid_t reader, const void *data, size_t size)
{
    _cleanup_fd_ int fd =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    struct stat status;

    if (fd < 0 || fstat(fd, &status))
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    close_to_others(fd, reader, status.st_mode);
    return write_whole(fd, data, size, status.st_size);
}
