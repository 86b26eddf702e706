/* SPDX-License-Identifier: Apache-2.0 */
/* See suspend_file.h. */
#include "suspend_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "fd.h"
#include "sock.h"

static int fail_in(const char *directory, int error)
{
    if (error == EOPNOTSUPP || error == EISDIR)
        return cli_fail("%s: its file system has no files without a name (O_TMPFILE); choose a "
                        "directory on ext4, xfs, btrfs or tmpfs",
                        directory);
    return cli_fail("no file can be made in %s: %s", directory, strerror(error));
}

static int open_to_read(int fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int put_into_envelope(const int files[2], int *ret_envelope)
{
    int ends[2];
    int error = sock_pair(ends);

    if (error)
        return error;
    _cleanup_fd_ int sender = ends[0], receiver = ends[1];
    error = sock_send(sender, "", 1, files, 2);
    if (!error)
        *ret_envelope = fd_steal(&receiver);
    return error;
}

int suspend_file_send(int file, int *ret_envelope)
{
    _cleanup_fd_ int readable = open_to_read(file);

    return readable < 0 ? -errno : put_into_envelope((const int[]){file, readable}, ret_envelope);
}

int suspend_file_make(const char *directory, int *ret_envelope)
{
    _cleanup_fd_ int writable = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (writable < 0)
        return fail_in(directory, errno);
    int error = suspend_file_send(writable, ret_envelope);
    return error ? fail_in(directory, -error) : 0;
}
