/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the print subsystem keeps for the server and for a session. Only its own files include this.
 * All of it is under the printer's lock.
 */
#pragma once

#include "backlog.h"
#include "device_printf.h"
#include "stream.h"

/* A place in a stream, and what is to be done when the GPU has reached it. */
struct printf_mark {
    struct list link;
    struct session *session;
    const struct device *device;
    const struct stream *stream; /* NULL once it is gone */
    CUevent event;
    uint32_t word, seq; /* the fence to be written; seq 0 = none, the mark stands behind launches */
    bool reached;
    bool may_be_blocked; /* streams of its session wait for what its client does */
};

/* The turn of one context. */
struct printf_turn {
    struct session *holder;
    struct session *last; /* who held it before: others go first */
    unsigned waiting;     /* workers that want the turn */
    unsigned launching;   /* between begin and end */
    bool shared;          /* a client has timed out waiting: the output has no owner */
    CUstream flush;       /* its synchronization makes the driver write the output; NULL at first */
};

struct server_printf {
    struct server *server;
    pthread_mutex_t lock;
    pthread_cond_t work;      /* for the thread */
    pthread_cond_t turn_free; /* for workers */
    struct list marks;        /* struct printf_mark: in the order of each stream */
    struct list active;       /* struct session_printf */
    struct printf_turn turns[DEVICE_CONTEXTS_MAX]; /* by device->index */
    bool started, stopping;
    pthread_t thread; /* valid once started */
    struct stream_observer stream_observer;
};

/* A session whose kernels have printed. */
struct session_printf {
    struct list link; /* in `active`, while the client's fences are deferred */
    struct session *session;
    struct backlog backlog;
};

/* ---- printf_turn.c ---- */

/* The caller holds the lock, which is released while it waits for the condition, for `timeout_ns`
 * at most. */
void printf_wait_locked(struct server_printf *printer, pthread_cond_t *condition,
                        uint64_t timeout_ns);

/* Waits until the turn is the session's, or shared. CUDA_ERROR_MPS_CLIENT_TERMINATED when the
 * session is about to end. The caller holds the lock, and does after the wait. */
CUresult printf_turn_take_locked(struct server_printf *printer, struct printf_turn *turn,
                                 struct session *session);

/* Gives the turns back that no kernel that may print needs any more. */
void printf_turns_release_locked(struct server_printf *printer);

/* Whether the session has the turn of any context. */
bool printf_turns_hold_locked(const struct server_printf *printer, const struct session *session);

/* The session ends: no turn refers to it any more. Where one is shared it stays so for others. */
void printf_turns_forget_locked(struct server_printf *printer, const struct session *session);

/* The one session that has turns. NULL when there is none, when several have turns of different
 * contexts, and while a turn is shared. */
struct session *printf_turns_only_holder_locked(const struct server_printf *printer);
