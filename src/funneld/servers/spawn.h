/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a server process: fork, exec funnel-server with clean descriptors, which becomes its
 * user. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
    const char *program;         /* path of funnel-server */
    const char *device;          /* auto, cuda, soft */
    bool spare;                  /* programs may leave it for a spare lane */
    bool batch;                  /* the batch lane of its service */
    const char *pipe_directory;  /* an empty one, for the server's own driver */
    const char *visible_devices; /* of the daemon's, "" = all: ordinals and UUIDs */
    uid_t uid;
    gid_t gid;
    int log_fd;
    int claims_fd; /* claim_table.h */
    int listen_fd; /* of the server, and ... */
    int state_fd;  /* ... its file: server_file.h; -1 = there are none */
};

/* Starts it: 0 or -errno. What goes wrong after the fork comes as SERVER_FAILED over *ret_fd, the
 * daemon's end of the socketpair. */
int spawn_server(const struct spawn *spawn, pid_t *ret_pid, int *ret_fd);
