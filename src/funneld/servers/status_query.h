/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A status query asks every server at once (or one server) for its clients and their use. It is
 * done when each has responded, died, or not responded in time.
 */
#pragma once

#include "command_protocol.h"
#include "daemon.h"

struct status_query;

/* The report of one server. */
struct status_report {
    struct status_query *query;
    struct command_server server;
    struct server_status_row *clients;
    unsigned client_count;
    unsigned capacity;
};

struct status_query {
    unsigned report_count;
    unsigned outstanding;
    struct status_report *reports;
    void (*done)(struct status_query *query, void *context); /* the query is freed afterwards */
    void *context;
};

/* Whether `number` is the process id of the client or, in another PID namespace, where process ids
 * are not known, its ID. */
bool status_row_is_client(const struct server_status_row *row, pid_t number);

/* The client that is meant, with its server: false unless it is exactly one. A process may have
 * several connections, which count as one: the first of its server. While it moves, that is the
 * server to which it has come. */
bool status_query_find(const struct status_query *query, pid_t wanted,
                       const struct status_report **ret_report,
                       const struct server_status_row **ret_row);

/* Queries the servers for which `wanted` (NULL = all) is true: 0, or -ENOMEM, and `done` is not
 * called then. `done` may be called before this returns. */
int status_query_start(struct daemon *daemon,
                       bool (*wanted)(const struct server_process *, const void *),
                       const void *selector, void (*done)(struct status_query *, void *),
                       void *context);
