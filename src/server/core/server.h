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

struct idle_source;
struct server;
struct session;

/* Called with a result of the driver that means that a context is lost. `reporter` is the session
 * whose call returned it, or NULL; with a reporter the handler does not return. */
typedef void server_fatal_handler(struct server *server, struct session *reporter, CUresult result);

struct server {
    struct devices devices;
    bool asks_for_lanes; /* --spare: clients may leave for a lane without long kernels */
    struct {
        const struct idle_source *source; /* NULL: not registered yet, so no call waits */
        bool ignored;                     /* exclusive calls are made at once */
        atomic_uint waiters;              /* sessions that wait for an idle point */
    } idle;                               /* idle.h */
    atomic_bool faulted;                  /* a context is lost, and the process is about to end */
    server_fatal_handler *on_fatal;
    atomic_bool heap_used;                /* a client has had kernels that allocate with malloc */
    void (*on_heap_use)(struct server *); /* called when that begins; NULL: clients share no heap */

    pthread_mutex_t lock;
    struct list
        sessions; /* struct session; only the main thread changes the list, under the lock */
    unsigned admission_blocks; /* under the lock: suspend.h */

    struct server_ipc *ipc;
    struct server_memory *memory;
    struct partitions *partitions; /* by device */
    struct server_streams *streams;
    struct server_modules *modules;
    struct server_printf *printf;
    struct server_launch *launch;
    struct server_graphs *graphs;
    struct server_references *references;
    struct server_accounting *accounting;
    struct server_life *life;
    struct server_swapping *swapping;
};

/* Begins a server that has no devices, sessions or parts yet. */
void server_init(struct server *server);

/* From any thread, which holds the server's lock: the session with this number, once its client has
 * attached, or NULL. */
struct session *server_session_locked(struct server *server, uint32_t id);

/* From any thread: a client has a kernel that allocates with malloc. */
void server_note_heap_use(struct server *server);

/* From any thread: whether there are no sessions, not even one that is about to attach. Takes the
 * server's lock. */
bool server_is_empty(struct server *server);
