/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server: the devices, the windows, the clients, and the daemon's socket.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device.h"
#include "list.h"
#include "loader.h"
#include "loop.h"
#include "map.h"
#include "module_cache.h"
#include "partition.h"
#include "reserve_area.h"
#include "session.h"
#include "window.h"

struct server {
    struct devices devices;
    struct windows windows;
    struct reserve_area reserve_area;
    struct partitions partitions[ATTACH_DEVICES_MAX]; /* by device */
    struct module_cache modules;
    enum driver_kind driver_kind;
    unsigned clients_max;
    atomic_bool faulted;
    bool no_batching; /* every launch by itself: FUNNEL_NO_LAUNCH_BATCHING */
    unsigned cpus;
    bool no_short_spin;       /* whoever waits looks on as long as ever: FUNNEL_NO_BRIEF_SPIN */
    bool no_copy_load;        /* clients hear nothing of others' copies: FUNNEL_NO_COPY_CROWD */
    bool no_spare_partitions; /* no shares ahead of need: FUNNEL_NO_SPARE_SHARES */

    struct loop *loop;
    struct watch *control_watch;
    int control_fd; /* the daemon, or -1 */
    int listen_fd;  /* with --listen, or -1 */
    int log_fd;
    int done_fd;  /* eventfd: a session has attached, or its thread has come to its end */
    bool leaving; /* take nobody new, leave after the last client */
    uint32_t next_id;
    unsigned session_count;
    unsigned abandoned; /* as the daemon was told last */

    pthread_mutex_t ipc_lock;
    struct map ipc_names; /* what clients have named for each other: ipc_share.c */

    pthread_mutex_t lock;
    struct list sessions; /* only the main thread adds and removes, under the lock */
};

/* Prepares everything but the driver: 0 or -errno. */
int server_init(struct server *server);

/* Main thread: starts a session for a client, or refuses it. Takes `socket` over. */
void server_take_client(struct server *server, const struct server_client *who, int socket);

/* Main thread: stops once no client is left, or at once when `force` is set. */
void server_leave(struct server *server, bool force);

/* Any thread: there are no clients, not even one that is about to attach. */
bool server_is_empty(struct server *server);

/* Any thread: something about a session has changed that the main thread has to see. */
void server_notify(struct server *server);

/* Clients come by themselves at `path`, without a daemon. For tests. 0 or -errno. */
int server_listen(struct server *server, const char *path);

/* funnel-server's main(). */
int server_main(int argc, char **argv);
