/* SPDX-License-Identifier: Apache-2.0 */
/* The lock is an empty file, NAME.loading, that the server has locked. The kernel drops the lock
 * when the server ends. */
#include "code_load_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "code_list.h"
#include "fd.h"

static int lock_file(const struct code_directory *directory, const char *name, int flags,
                     int *ret_fd)
{
    char file[CODE_FILE_SIZE];

    code_file_name(name, "loading", file);
    _cleanup_fd_ int fd =
        openat(directory->fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
        return -errno;
    *ret_fd = fd_steal(&fd);
    return 0;
}

int code_load_lock_take(const struct code_directory *directory, const char *name, int *ret_fd)
{
    return lock_file(directory, name, O_CREAT, ret_fd);
}

void code_load_lock_release(const struct code_directory *directory, const char *name, int *fd)
{
    char file[CODE_FILE_SIZE];

    if (*fd < 0)
        return;
    code_file_name(name, "loading", file);
    unlinkat(directory->fd, file, 0);
    fd_close(fd);
}

unsigned code_load_locks_recover(const struct code_directory *directory)
{
    struct code_list list;
    unsigned deleted = 0;

    if (code_list_read(directory, &list))
        return 0;
    for (unsigned i = 0; i < list.count; i++) {
        int fd = -1;
        if (lock_file(directory, list.entries[i].name, 0, &fd))
            continue;
        code_entry_delete(directory, list.entries[i].name);
        code_load_lock_release(directory, list.entries[i].name, &fd);
        deleted++;
    }
    code_list_fini(&list);
    return deleted;
}
