/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of funneld that its subsystems share. The daemon runs one event loop: it accepts
 * connections, starts and watches servers, and hands programs over to them. It never loads a GPU
 * driver. It knows who the clients of servers are (client_record.h), and asks servers what they do.
 */
#pragma once

#include <event2/event.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "client_limits.h"
#include "client_program.h"
#include "instance.h"
#include "known_programs.h"
#include "lane_choice.h"
#include "limit_rules.h"
#include "list.h"
#include "paths.h"
#include "quota_table.h"
#include "static_partitions.h"

struct console;
struct daemon;
struct mps_namespace;
struct server_process;

/* The actions of the subsystems above the servers at an event of a server or a namespace. The
 * loop fills this table (daemon_loop.c); the servers and namespaces call it. */
struct daemon_events {
    /* A connection waits at the listening socket of a namespace. */
    void (*connection)(struct daemon *daemon, int listen_fd, struct mps_namespace *space);
    /* The namespace is about to be destroyed. */
    void (*namespace_closed)(struct daemon *daemon, const struct mps_namespace *space);
    /* The server takes clients now. */
    void (*server_ready)(struct server_process *server);
    /* The server of that name could not be started; `status` is a CUresult. */
    void (*server_failed)(struct daemon *daemon, const char *name, int status, const char *text);
    /* The process of a server that had started has ended, and its record is freed. */
    void (*server_gone)(struct daemon *daemon, const char *name);
    /* The process of some server has ended, started or not; called last. */
    void (*server_reaped)(struct daemon *daemon);
    /* The front end has ordered a reload, and is answered when that is over. */
    void (*reload)(struct daemon *daemon, struct console *console);
};

/* Programs that have faulted: quarantine.h. */
struct quarantined {
    struct client_program program;
    uint64_t until; /* clock_ns(); 0 = no program */
};

#define QUARANTINE_ENTRIES 32u

struct quarantine {
    struct quarantined entries[QUARANTINE_ENTRIES];
};

struct daemon {
    struct event_base *base;
    const struct daemon_events *events;
    struct paths paths;
    struct instance instance;
    struct limits defaults;
    struct limit_rules rules;
    struct quotas quotas;
    struct static_partitions partitions; /* of MPS 2 */
    const char *device;                  /* auto, cuda, soft */
    bool standby;                        /* and a process stands by for each: standby.h */
    uint32_t isolation;    /* enum isolation, where a service has none of its own: fate_domain.h */
    uint32_t timeslice_us; /* of servers without percentages: timeslice.h; 0 = the driver's own */
    unsigned stall_timeout_s;    /* 0 = no server is killed for it: heartbeat.h */
    const char *metrics_address; /* where metrics are served; NULL = nowhere */
    bool foreground;
    bool is_trial;          /* reads its options and its files, and opens no socket */
    char *const *arguments; /* that it was started with, for the program that it becomes */
    char program[PATH_MAX]; /* that was started: after an upgrade, the new one */
    bool audits;            /* whether the memory of each client that leaves is logged ... */
    bool audits_by_order;   /* ... and whether an operator said so, or it is the default */
    bool multiuser;         /* one server, under the daemon's user, for all users */
    uid_t uid;
    uid_t server_uid; /* of the one server for all users: the daemon's own, or --server-user */
    time_t since;

    struct event *acceptor;
    struct event *accept_pause;
    int kept_fd;          /* for refusals when there is no other descriptor: accept_shortage.h */
    uint64_t short_since; /* clock_ns(); 0 = descriptors are left */
    struct event *signals[4];
    struct list services;        /* struct service: named servers, running or not */
    struct list servers;         /* struct server_process */
    struct list pending_clients; /* struct pending_client */
    struct list consoles;        /* struct console: front ends */
    struct list draining;        /* struct affected_client: fault_drain.h */
    uint64_t drain_deadline;     /* of the clients of faults in this minute; clock_ns() */
    uint64_t next_drain;         /* when faults get a deadline of their own again */
    unsigned waiting_clients;    /* pending clients that wait for a server */
    struct quarantine quarantine;
    struct known_programs known;
    struct lane_choices lane_choices;
    struct list lane_moves;  /* struct lane_move: moves that have not ended */
    struct list lane_trials; /* struct lane_trial: lane_watch.h */
    struct list departed;    /* struct departed: clients that are between two servers */
    bool lane_moves_on;      /* programs are moved without an order: lane_watch.h */
    bool spare_lane_on;      /* programs beside long kernels load code elsewhere: spare_lane.h */
    uint32_t batch_percent;  /* of the time, that batch lanes get at least: timeslice.h */
    uint32_t batch_slice_us; /* of batch lanes beside a lane that rests: timeslice.h */

    bool quitting;
    bool forced;                /* at least one server had to be ended by force */
    struct event *log_check;    /* every few seconds: whether a log is too long */
    struct event *quit_timeout; /* when it fires, servers are ended by force */
};

/* Called before anything else. */
void daemon_init(struct daemon *daemon);
