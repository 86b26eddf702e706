/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the print subsystem keeps for the server and for a session. Only its own files include this.
 *
 * There are three locks, taken in this order. A context's `collecting` is held while a driver
 * writes its output and that goes to the clients. `lock` guards the lists of clients, and a
 * session's own its output: both are held for moments, and in no call of the driver. A launch takes
 * `lock` alone, so it never waits for output.
 */
#pragma once

#include "backlog.h"
#include "device_printf.h"
#include "stream.h"

#define PRINTF_LOGGED_MAX 1024 /* bytes of output in one line of the log */

/* A session in one context. It is in the context's list while its kernels may print, or may have
 * printed what is not collected yet. The session's own thread changes it, with `lock`, and reads it
 * without. */
struct printf_client {
    struct list link;
    struct session *session;
    struct print_format_set formats; /* of those kernels */
    size_t fits;                     /* under `collecting`: printf_collect.c */
};

struct printf_context {
    pthread_mutex_t collecting;
    uint64_t printed_at; /* clock_ns() when output came last; under `collecting` */
    struct list clients; /* struct printf_client */
};

struct server_printf {
    pthread_mutex_t lock;
    struct error_budget unknown; /* of lines about output of unknown clients; under `lock` */
    struct printf_context contexts[DEVICE_CONTEXTS_MAX]; /* by device->index */
};

struct session_printf {
    struct printf_client clients[DEVICE_CONTEXTS_MAX]; /* by device->index */
    bool pending;         /* session thread: as channel_output_pending() tells the client */
    bool is_mixed;        /* under the server's `lock`: the log says so */
    pthread_mutex_t lock; /* guards what follows */
    struct backlog backlog;
    struct error_budget lost; /* of lines about output that was not kept */
};

/* Whether the client's kernels may print in that context. Session thread. */
static inline bool printf_client_may_print(const struct printf_client *client)
{
    return client->formats.count || client->formats.has_unknown;
}

/* ---- printf_collect.c ---- */

/* Gives what the driver has written of a context to the clients whose kernels printed it: whether
 * there was anything. The caller holds the context's `collecting`. */
bool printf_distribute_held(struct server_printf *printer, unsigned context);

/* Puts what is kept for a client into its region, as far as there is space: whether that was all.
 */
bool printf_deliver(struct session *session);
