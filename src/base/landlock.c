/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's interface is declared here, because the C library's headers may be older than it. */
#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"

/* These numbers are the same on all architectures. */
#define NR_CREATE_RULESET 444
#define NR_ADD_RULE 445
#define NR_RESTRICT_SELF 446

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_ABI_1 ((1ull << 13) - 1) /* up to LANDLOCK_ACCESS_FS_MAKE_SYM */
#define FS_REFER (1ull << 13)       /* ABI 2 */
#define FS_TRUNCATE (1ull << 14)    /* ABI 3 */
#define FS_IOCTL_DEV (1ull << 15)   /* ABI 5 */
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define SCOPE_ABSTRACT_UNIX_SOCKET (1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ull << 1)

struct ruleset_attributes {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

struct path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

static const uint64_t granted[] = {
    [LANDLOCK_READ] = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR,
    [LANDLOCK_WRITE] =
        FS_EXECUTE | FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    [LANDLOCK_CHANGE] = FS_ABI_1 | FS_REFER | FS_TRUNCATE | FS_IOCTL_DEV,
};

static uint64_t rights_of_version(long version)
{
    return FS_ABI_1 | (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
           (version >= 5 ? FS_IOCTL_DEV : 0);
}

int landlock_begin(struct landlock_ruleset *ruleset)
{
    long version = syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

    if (version < 0)
        return -errno;
    const struct ruleset_attributes attributes = {
        .handled_access_fs = rights_of_version(version),
        .scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
    };
    size_t size = version >= 6 ? sizeof(attributes) : sizeof(attributes.handled_access_fs);

    ruleset->handled = attributes.handled_access_fs;
    ruleset->fd = (int)syscall(NR_CREATE_RULESET, &attributes, size, 0);
    return ruleset->fd < 0 ? -errno : 0;
}

/* The kernel refuses rights of directories for other files. */
static uint64_t rights_for(const struct landlock_ruleset *ruleset, int fd,
                           enum landlock_rights rights)
{
    struct stat info;
    uint64_t wanted = granted[rights] & ruleset->handled;

    return !fstat(fd, &info) && S_ISDIR(info.st_mode) ? wanted : wanted & FS_OF_FILES;
}

int landlock_allow(const struct landlock_ruleset *ruleset, const char *path,
                   enum landlock_rights rights)
{
    _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
    const struct path_beneath rule = {rights_for(ruleset, fd, rights), fd};
    return syscall(NR_ADD_RULE, ruleset->fd, RULE_PATH_BENEATH, &rule, 0) ? -errno : 0;
}

int landlock_enter(const struct landlock_ruleset *ruleset)
{
    return syscall(NR_RESTRICT_SELF, ruleset->fd, 0) ? -errno : 0;
}
