/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon is the only one of its pipe directory. Here are safe directories, a lock that ends with
 * the process, the pid file that scripts read, and the socket that programs connect to.
 */
#pragma once

#include "paths.h"

#define INSTANCE_LOCK_NAME "funnel.lock"
#define INSTANCE_PID_NAME "nvidia-cuda-mps-control.pid"
/* Servers are told that this is the pipe directory: their own driver must find no daemon there. */
#define INSTANCE_EMPTY_NAME "empty"
/* The facts of each server for the next daemon, and its socket: funneld/servers/server_file.h.
 * No server of an operator's has such a name. */
#define INSTANCE_SERVERS_NAME "funnel.servers"

#define INSTANCE_REASON_MAX 1024

struct instance {
    const struct paths *paths;
    int lock_fd;
    int listen_fd;
};

/* Makes the directories, takes the lock and listens, or goes on with both after a reload: 0;
 * -EEXIST when a daemon runs here already; -errno. In either case of failure `ret_reason` is a
 * message that names the remedy. */
int instance_open(struct instance *instance, const struct paths *paths,
                  char ret_reason[INSTANCE_REASON_MAX]);

/* Writes the pid file; for the process that stays. 0 or -errno. */
int instance_write_pid(const struct instance *instance);

/* Removes socket and pid file, then lets the next daemon in. */
void instance_close(struct instance *instance);
