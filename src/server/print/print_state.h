/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The print subsystem's state of the server and of a session. Only its own files include this.
 *
 * Lock order: a context's `collecting`, the server's `lock`, a session's `lock`. `collecting` is
 * held while the driver writes output, until the clients have it. The server's `lock` guards the
 * lists of clients, a session's its output. Both are held briefly, and in no call of the driver. A
 * launch takes the server's `lock` alone, so it never waits for output.
 */
#pragma once

#include "backlog.h"
#include "device_printf.h"
#include "stream.h"

#define PRINTF_LOGGED_MAX 1024 /* bytes of output in one line of the log */

/* A session in one context. The context's list has it while its kernels may print, or may have
 * printed uncollected output. The session's thread writes it with the server's `lock`, and reads it
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
    struct printf_context contexts[ATTACH_DEVICES_MAX]; /* by device->ordinal */
};

struct session_printf {
    struct printf_client clients[ATTACH_DEVICES_MAX]; /* by device->ordinal */
    bool pending;         /* session thread: as channel_output_pending() tells the client */
    bool is_mixed;        /* under the server's `lock`: the log says so */
    pthread_mutex_t lock; /* guards what follows */
    struct backlog backlog;
    struct error_budget lost; /* of lines about output that was not kept */
};

/* Session thread: whether the client's kernels may print in that context. */
static inline bool printf_client_may_print(const struct printf_client *client)
{
    return client->formats.count || client->formats.has_unknown;
}
