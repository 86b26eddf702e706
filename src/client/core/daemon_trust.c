/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel keeps the credentials that the listener had when it began to listen. */
#include "daemon_trust.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "sock.h"
#include "text.h"

static bool is_named(uid_t uid)
{
    const char *value = getenv("FUNNEL_DAEMON_UID");
    uint64_t number;

    return value && !text_to_u64(value, &number) && number == uid;
}

bool daemon_is_trusted(int socket)
{
    pid_t pid;
    uid_t uid;
    gid_t gid;

    return !sock_peer(socket, &pid, &uid, &gid) && (uid == 0 || uid == geteuid() || is_named(uid));
}
