/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel keeps the credentials that the listener had when it began to listen. */
#include "daemon_trust.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "fd.h"
#include "sock.h"
#include "text.h"

static bool is_named(uid_t uid)
{
    const char *value = getenv("FUNNEL_DAEMON_UID");
    uint64_t number;

    return value && !text_to_u64(value, &number) && number == uid;
}

static bool is_trusted(int socket)
{
    pid_t pid;
    uid_t uid;
    gid_t gid;

    return !sock_peer(socket, &pid, &uid, &gid) && (uid == 0 || uid == geteuid() || is_named(uid));
}

int daemon_connect_trusted(const char *path, int *ret_fd)
{
    _cleanup_fd_ int fd = -1;
    int error = sock_connect(path, &fd);

    if (!error && !is_trusted(fd))
        error = -EPERM;
    if (!error)
        *ret_fd = fd_steal(&fd);
    return error;
}
