/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server: its devices, its sessions, and what each subsystem keeps for all of them. A
 * subsystem's part is a pointer to a structure that only the subsystem itself defines.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device.h"
#include "list.h"

struct calm;
struct server;
struct session;

/* Called with a result of the driver that means that a context is lost. `witness` is the session
 * whose call returned it, or NULL; with a witness the handler does not return. */
typedef void server_fatal_handler(struct server *server, struct session *witness, CUresult result);

/* On the session's thread: whether work in a context keeps calls that wait for all streams for
 * long. */
typedef bool server_occupied_query(struct session *session, const struct device *device);

/* On the session's thread: waits until no work keeps such calls for long: calm.h. */
typedef void server_calm_waiter(struct session *session, const struct device *device,
                                struct calm *calm);

struct server {
    struct devices devices;
    server_occupied_query *is_occupied; /* the stream subsystem's, as the next */
    server_calm_waiter *await_calm;     /* NULL: such calls are made at once */
    atomic_bool faulted;                /* a context is lost, and the process is about to end */
    server_fatal_handler *on_fatal;

    pthread_mutex_t lock;
    struct list
        sessions;  /* struct session; only the main thread changes the list, under the lock */
    unsigned bars; /* under the lock: calls beside which no new client begins, calm.h */

    struct server_ipc *ipc;
    struct server_memory *memory;
    struct partitions *partitions; /* by device */
    struct server_streams *streams;
    struct server_modules *modules;
    struct server_printf *printf;
    struct server_launch *launch;
    struct server_graphs *graphs;
    struct server_life *life;
};

/* Begins a server that has no devices, sessions or parts yet. */
void server_init(struct server *server);

/* From any thread, which holds the server's lock: the session with this number, once its client has
 * attached, or NULL. */
struct session *server_session_locked(struct server *server, uint32_t id);

/* From any thread: whether there are no sessions, not even one that is about to attach. Takes the
 * server's lock. */
bool server_is_empty(struct server *server);
