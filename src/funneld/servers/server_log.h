/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server logs through a pipe, and the daemon writes the lines to server.log. So no process of a
 * user has a file of the daemon's open. So the daemon bounds the file and what comes in a minute,
 * and lines of a server and its standby do not mix.
 *
 * A server never waits for its log. While the disk is full, or the server has logged too much, its
 * lines stay in the pipe. The server counts the lines for which the pipe has no space, and a later
 * line says how many. What a server that dies has written last is still in the pipe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct server_process;

struct server_log {
    int fd; /* the daemon's end of the pipe; -1 = there is none */
    struct event *readable;
    struct event *retry;
    char *text; /* that has not been written yet, and a NUL behind it */
    size_t used;
    uint64_t minute, written; /* bytes since then; clock_ns() */
    bool complained;          /* control.log says that lines wait */
};

/* 0, for a new server with its end, which is the caller's, or -errno. A server that is taken over
 * has its end: `ret_fd` is NULL then, and what it has logged without a daemon is still there. */
int server_log_open(struct server_process *server, int *ret_fd);

/* The server has ended, or was not started: writes what is left. May be called again. */
void server_log_close(struct server_process *server);
