/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A status query for a command about one client. A client that is on its way from one server to the
 * next is with neither for a moment, and the command waits for it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct console;
struct server_process;
struct status_query;

struct client_query {
    struct console *console;
    pid_t client; /* a process id, or an ID */
    pid_t server; /* that is asked; 0 = all */
    bool again;   /* the answer to the last query is out of date: after a pause */
    /* Which servers the front end may ask; NULL = all. */
    bool (*may_ask)(const struct console *console, const struct server_process *server);
    void (*done)(struct status_query *query, void *context); /* as of status_query_start() */
    void *context;
};

/* How long a command waits for a client at most. */
#define CLIENT_QUERY_TIMEOUT_S 60

/* 0, or -ENOMEM, and `done` is not called then. `done` may be called before this returns. */
int client_query_start(const struct client_query *what);
