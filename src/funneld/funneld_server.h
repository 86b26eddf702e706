/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers that run: at most one that takes clients for each name, which is uid_N for the server
 * of a user, or that of a service (service.h). A server is started for its first client, told of
 * each one that follows, asked about them, and replaced when it has died.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "daemon.h"
#include "peer.h"
#include "server_protocol.h"

struct mps_namespace;

#define SERVER_DEVICES_MAX 256

/* Which server is meant, and what it takes to start it. */
struct server_route {
    char name[SERVER_NAME_MAX];
    uid_t uid;
    gid_t gid;
    char devices[SERVER_DEVICES_MAX]; /* it may use; "" = all */
};

struct server {
    struct list link;
    struct daemon *daemon;
    struct peer peer;
    pid_t pid;
    char name[SERVER_NAME_MAX];
    uid_t uid;
    time_t since;
    enum server_state state;
    bool stopping;             /* takes nobody new, and ends */
    struct limits limits;      /* for clients that come later */
    struct server_ready ready; /* all zero until it is */
    int failure;               /* CUresult and sentence of a start that failed */
    char failure_text[sizeof(((struct server_failed *)NULL)->text)];
    struct console *starter; /* the front end that waits for the start, or NULL */
    struct event *deadline;  /* to start, or to stop: then it is killed */
    struct list questions;
    struct list clients; /* attached now; aftermath.h */
    unsigned introduced; /* clients that have not gone */
    unsigned abandoned;  /* those of them that have ended but for a kernel without an end */
    uint32_t last_question;
};

/* How an answer arrives. `end` is called exactly once: status is what RESULT says, 0 for
 * STATUS_END, -EPIPE when the server died, -ETIMEDOUT when it kept silent. */
struct answer {
    void (*row)(void *context, const struct server_status_row *row); /* may be NULL */
    void (*end)(void *context, int status, const struct server_status_end *totals);
    void *context;
};

/* The one of that name (also while it starts or stops), or NULL. */
struct server *server_for(struct daemon *daemon, const char *name);
struct server *server_by_pid(struct daemon *daemon, pid_t pid);

/* Starts one: 0 or -errno, with the server in the list. */
int server_start(struct daemon *daemon, const struct server_route *route,
                 struct server **ret_server);

/* Whether it is gone although the loop has not heard of it yet; it counts as stopping then. */
bool server_has_died(struct server *server);

/* Hands a program that came in at `entrance` (NULL = the daemon's own) over to a server that is
 * ready. Takes `fd`. */
void server_introduce(struct server *server, const struct mps_namespace *entrance,
                      const struct server_identity *identity, const struct hello *hello, int fd);

/* Sends `message` (its header is filled here) and reports what comes back. */
void server_ask(struct server *server, void *message, enum server_message kind, int timeout_s,
                const struct answer *answer);

/* Takes nobody new and ends: when the last client has gone, or now. */
void server_stop(struct server *server, bool force);

/* Nobody is left there but kernels without an end: whether it was, and is now being, killed. */
bool server_kill_abandoned(struct server *server);

/* A child has exited; true when it was a server of ours. */
bool server_reap(struct daemon *daemon, pid_t pid, int wait_status);

/* Gives every server its log anew. */
void server_reopen_logs(struct daemon *daemon);

const char *server_state_name(const struct server *server);
