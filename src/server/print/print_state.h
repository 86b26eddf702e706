/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the print subsystem keeps for the server and for a session. Only its own files include this.
 *
 * There are two locks. `collecting` guards the driver's output on its way to a client, and is held
 * in calls of the driver that write it. `lock` guards the turns, is taken after `collecting`, and
 * never held in a call of the driver, because each launch of a kernel that may print takes it. Who
 * ends a turn holds both, so what is collected for a client is still its own.
 */
#pragma once

#include "backlog.h"
#include "device_printf.h"
#include "stream.h"
#include "stream_probe.h"

/* The turn of one context. */
struct printf_turn {
    struct session *holder;   /* NULL: no client's kernels may print */
    struct session *last;     /* who held it before: others go first */
    uint64_t grants;          /* how often it was given to a client */
    unsigned waiting;         /* workers that want the turn */
    bool watched;             /* one of them waits for the holder's work */
    atomic_uint launching;    /* between device_printf_begin() and device_printf_end() */
    struct stream_probe late; /* under `collecting`: work of clients that were not waited for any
                                 longer. While there is some, it is unknown whose the output is */
};

struct server_printf {
    pthread_mutex_t collecting;
    pthread_mutex_t lock;
    pthread_cond_t turn_free;
    struct printf_turn turns[DEVICE_CONTEXTS_MAX]; /* by device->index */
};

struct session_printf {
    struct backlog backlog; /* under `collecting` */
    bool pending;           /* under `lock`: as channel_output_pending() tells the client */
};

static inline struct printf_turn *printf_turn_of(struct server_printf *printer,
                                                 const struct device *device)
{
    return &printer->turns[device->index];
}

/* ---- printf_turn.c ---- */

/* Gives the turn of the context to the session, which may have to wait for it; meanwhile the lock
 * is released. CUDA_ERROR_MPS_CLIENT_TERMINATED when the session is about to end. The caller holds
 * the lock, and does after the wait. */
CUresult printf_turn_take_locked(struct server_printf *printer, const struct device *device,
                                 struct session *session);

/* The holder's kernels are done, and their output is collected. The caller holds both locks. */
void printf_turn_end_locked(struct server_printf *printer, struct printf_turn *turn);

/* Whether the session has the turn of any context. The caller holds the lock. */
bool printf_turns_hold_locked(const struct server_printf *printer, const struct session *session);

/* The session ends: no turn refers to it any more. The caller holds `collecting`. */
void printf_turns_forget_held(struct server_printf *printer, const struct session *session);

/* ---- printf_collect.c ---- */

/* Makes the driver write what kernels have printed in a context, and keeps it for the client that
 * has the turn. Returns what the driver says. The caller holds `collecting`, and the context is
 * current. */
CUresult printf_collect_held(struct server_printf *printer, const struct device *device);

/* Keeps what calls of other purposes have made the driver write. The caller holds `collecting`. */
void printf_collect_strays_held(struct server_printf *printer);

/* Puts what is kept for a client into its region, as far as there is room: whether that was all.
 * The caller holds `collecting`. */
bool printf_deliver_held(struct session *session);
