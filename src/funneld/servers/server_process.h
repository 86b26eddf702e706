/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server processes: at most one that takes clients for each name. The name is uid_N for the
 * server of a user, that of a service (service.h), or that of another lane of either (lane.h). A
 * server is started for its first client, gets each client that follows, is queried about them, and
 * is replaced when it has died.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "connection.h"
#include "daemon.h"
#include "heartbeat.h"
#include "known_programs.h"
#include "server_file.h"
#include "server_log.h"
#include "server_protocol.h"

#define SERVER_DEVICES_MAX 256
/* For the answer of a server that is taken over. Its main thread waits for neither clients nor the
 * driver, unless it starts just now. */
#define RESUME_TIMEOUT_S 30
#define SERVER_EXIT_UNKNOWN (-1) /* in the place of a status of wait(2) */

/* The server of a program, and the facts that its start needs. */
struct server_route {
    char name[SERVER_NAME_MAX];
    uid_t uid;
    gid_t gid;
    uid_t owner;                      /* whose quotas count it: user_owner.h */
    char devices[SERVER_DEVICES_MAX]; /* it may use; "" = all */
};

enum server_role {
    SERVER_SERVING,  /* the one of its name that takes clients, or will when it is ready */
    SERVER_STANDBY,  /* waits to take the place of the serving one: standby.h */
    SERVER_REPLACED, /* is ending, and another serves under its name */
};

/* A caller that waits for the start of a server. `done` is called exactly once, with `ready` false
 * when the server has failed; server->failure_text says why then. */
struct start_waiter {
    void (*done)(void *context, const struct server_process *server, bool ready);
    void *context;
};

/* What a server was told last of its share of the time: struct server_set_timeslice. */
struct told_slice {
    uint64_t us;
    bool beside_batch, batch_has_share;
};

struct server_process {
    struct list link;
    struct daemon *daemon;
    struct connection connection;
    struct server_log log;
    struct server_file file;
    pid_t pid;
    int process_fd;      /* of the process, where another daemon has started it; else -1 */
    struct event *ended; /* when that has ended; NULL = it is this daemon's child */
    char name[SERVER_NAME_MAX];
    char service[SERVER_NAME_MAX]; /* the name without its lane: lane_name.h */
    uid_t uid, owner;              /* as in struct server_route */
    gid_t gid;
    char devices[SERVER_DEVICES_MAX]; /* it may use; "" = all */
    time_t since;
    enum server_role role;
    enum server_state state;
    bool stopping;             /* takes no new clients, and ends */
    bool dismissed;            /* by an order */
    bool resuming;             /* taken over, and has not said yet which clients it has */
    bool beside_another;       /* it started while the one before it was ending */
    struct limits limits;      /* for clients that come later */
    struct server_ready ready; /* all zero until it is */
    int failure;               /* CUresult and message of a start that failed */
    char failure_text[sizeof(((struct server_failed *)NULL)->text)];
    struct start_waiter starter;  /* `done` is NULL when no caller waits */
    struct event *deadline;       /* to start, or to stop: then it is killed */
    struct list requests;         /* struct pending_request */
    struct list records;          /* struct client_record: the clients that it has got */
    struct known_programs served; /* whose code it has: spare_lane.h */
    struct told_slice told_slice; /* timeslice.h */
    bool held;                    /* timeslice.h: the GPU, nearly all of the time */
    unsigned unrested_beats;      /* timeslice.h: heartbeats */
    unsigned work_beats;          /* timeslice.h: for so many more the lane has work */
    bool share_logged;            /* timeslice.h */
    unsigned handed_over;         /* how many there are */
    uint64_t idle_since;          /* lane.h; clock_ns(); 0 = a program has come since */
    uint64_t lane_ahead_at;       /* lane_watch.h; clock_ns(); 0 = never */
    uint32_t last_client;         /* the number of the last of them */
    bool has_exaggerated;         /* it has reported figures that cannot be */
    bool has_invented;            /* it has spoken of a client that it was not given */
    unsigned abandoned;           /* those of them that have ended but for an endless kernel */
    bool heap_used;               /* kernels of clients may leave memory behind there */
    uint32_t last_request;
    struct heartbeat heartbeat;
    struct event *standby_timer; /* to start its standby; NULL = it has never had one */
};

/* The serving one of that name or process (also while it starts or stops), or NULL. */
struct server_process *server_process_find(const struct daemon *daemon, const char *name);
struct server_process *server_process_by_pid(const struct daemon *daemon, pid_t pid);

/* One of that name whose place another has taken, and whose process is still there; or NULL. */
struct server_process *server_process_find_ending(const struct daemon *daemon, const char *name);

/* The record of a server that has no process yet; NULL when there is no memory. It belongs into
 * daemon->servers. */
struct server_process *server_process_create(struct daemon *daemon,
                                             const struct server_route *route,
                                             enum server_role role);

/* Its clients end with it, and the next daemon will not hear of it. */
void server_process_free(struct server_process *server);

/* Never reaches a process that has got the number of one that has ended. */
void server_process_signal(const struct server_process *server, int number);

/* Whether its process is gone, or is about to be, although the loop has not seen that yet; it
 * counts as stopping then. */
bool server_process_has_died(struct server_process *server);

/* The server ends, or will soon. Another takes its place, if it has a standby or clients that will
 * want one, and programs that wait are placed again. Nothing happens when the end was ordered. */
void server_process_lost(struct server_process *server);

/* Hands a program that connected to `space` (NULL = the daemon's own socket) over to a ready
 * server. Refuses it when the daemon can keep no record of it. `hello` has the class that the
 * program gets. `groups` are its control groups (control_group.h), NULL = not known. Takes `fd`. */
void server_process_add_client(struct server_process *server, const struct mps_namespace *space,
                               const struct server_identity *identity,
                               const struct client_program *program, const struct hello *hello,
                               const char *groups, int fd);

/* Takes no new clients and ends: when the last client has gone, or now. */
void server_process_stop(struct server_process *server, bool force);

/* Kills the server if only kernels without an end are left there; returns whether it did. */
bool server_process_kill_abandoned(struct server_process *server);

/* The same; also if it has no clients, and kernels of former ones have used its heap. */
bool server_process_kill_useless(struct server_process *server);

/* Whether kernels have used its heap, and the processes of all its clients have ended. */
bool server_process_is_emptying(const struct server_process *server);

/* Ends the server by a signal unless it has started, or its process exits, by then. */
void server_process_set_deadline(struct server_process *server, int seconds);

/* The same within the time that it is given to stop. */
void server_process_set_stop_deadline(struct server_process *server);

/* Answers the caller that waits for the start, if any. */
void server_process_answer_starter(struct server_process *server, bool ready);

/* A process has exited, with SERVER_EXIT_UNKNOWN if it was not a child; true when it was a server
 * of this daemon. */
bool server_process_reap(struct daemon *daemon, pid_t pid, int wait_status);

/* Tells a server that is ready, or all of them, the quotas that are in force now. */
void server_process_send_quotas(struct server_process *server);
void server_process_send_quotas_to_all(struct daemon *daemon);

/* Whether it has been ready, for this daemon or for an earlier one. */
bool server_process_has_started(const struct server_process *server);

const char *server_process_state_name(const struct server_process *server);
