/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a server: arrival and departure of clients, and its end. The main thread's, except
 * where a comment says otherwise. Above `loop` all is constant once there are clients, or atomic.
 */
#pragma once

#include <stdatomic.h>

#include "loader.h"
#include "loop.h"
#include "server.h"
#include "server_protocol.h"
#include "usage_mark.h"

struct image_reader;
struct ptx_compiler;
struct code_cache;
struct sensor_watch;
struct trace;
struct worker_pool;
struct claims;

/* What a subsystem keeps of a session. `init`: 0 or a negative error number. `fini` also gets
 * sessions whose part is NULL because it was not created. */
struct session_part {
    int (*init)(struct session *session);
    void (*fini)(struct session *session);
};

struct server_life {
    void (*serve)(struct session *session); /* runs a client's commands, on the session's thread */
    const struct session_part *upper_part;  /* NULL: none; swapping.h registers it */
    enum driver_kind driver_kind;
    unsigned clients_max;
    unsigned cpus;
    bool no_short_spin;       /* waiting threads never shorten their spin: FUNNEL_OFF=short-spin */
    bool no_copy_load;        /* clients get no copy load of others: FUNNEL_OFF=copy-load */
    bool no_spare_partitions; /* none are created in advance: FUNNEL_OFF=spare-shares */

    struct image_reader *image_reader; /* NULL: none, FUNNEL_OFF=sandbox */
    struct ptx_compiler *ptx_compiler; /* NULL: none, the driver compiles: FUNNEL_PTX_COMPILER */

    _Atomic(struct claims *) claims; /* NULL: none; window_claim.h */

    struct loop *loop;
    struct watch *control_watch;
    int control_fd;    /* the daemon, or -1; the number never changes */
    bool keeps_gone;   /* another daemon may come, and has to hear of clients that have gone */
    atomic_bool alone; /* the daemon has died, and no other one has come: next_daemon.h */
    struct list unnoted_gone; /* daemon_report.c */
    int listen_fd;            /* with --listen, or -1 */
    int notify_fd;            /* eventfd: a session has attached, or its thread has ended */
    bool leaving;             /* accepts no client, and exits after the last one */
    uint32_t last_id;         /* of clients that came by --listen */
    unsigned session_count;
    unsigned abandoned;            /* the last report to the daemon */
    bool heap_used;                /* the same */
    struct report_pace reports;    /* of usage */
    int look_fd;                   /* eventfd of early_report.h; set before there is a watchdog */
    int beat_timer;                /* timerfd of heartbeats; set before there is a watchdog */
    uint64_t beat_at;              /* clock_ns() of the last heartbeat */
    struct code_cache *code_cache; /* NULL: none; code_cache.h */
    struct sensor_watch *sensors;  /* NULL: none; sensor_watch.h */
    struct worker_pool *pool;      /* NULL: none; worker_pool.h */
    struct trace *trace;           /* NULL: none; written under the server's lock: trace.h */
    bool stall_logged;             /* the log says that clients wait for another: stall.h */
};

/* Creates the server's life without loop and descriptors: 0 or -ENOMEM. `serve` runs the commands
 * of a client until its session ends. */
int server_life_init(struct server *server, void (*serve)(struct session *session));
void server_life_fini(struct server *server);

/* Starts the event loop: 0 or -errno. */
int server_life_start(struct server *server);

/* Starts a session for a client, or refuses it. Takes `socket` over. */
void server_take_client(struct server *server, const struct server_client *who, int socket);

/* Stops the loop once no client is left, or at once when `force` is set. */
void server_leave(struct server *server, bool force);

/* From any thread: wakes the main thread, because a session has changed. */
void server_notify(struct server *server);

/* For tests: clients connect to a socket at `path` without a daemon. 0 or -errno. */
int server_listen(struct server *server, const char *path);
