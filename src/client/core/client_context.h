/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: a primary one for each device, and the contexts that programs create. They live in the
 * client alone: the server has one real context on each GPU for all clients. Here a context is the
 * owner of streams, events, modules, arrays and memory; src/client/context ends them with it.
 */
#pragma once

#include <stdatomic.h>

#include "client.h"

/* A context whose memory another one may access, as both were then. */
struct peer_access {
    CUcontext peer;
    uint64_t peer_epoch, epoch;
};

struct context {
    CUcontext handle;
    unsigned long long id;
    struct device *device;
    bool primary;
    atomic_bool active; /* atomic; of a primary one: the program retains it */
    unsigned retained;  /* under client->lock */
    unsigned attached;  /* by cuCtxAttach; under client->lock */
    unsigned flags;
    unsigned version;
    uint64_t epoch;    /* grows with every reset */
    uint32_t share;    /* of the client's multiprocessors, 0 = all of them: see affinity.c */
    uint32_t sm_count; /* in that share */
    CUgreenCtx green; /* NULL, or how a green context is called; then this owns nothing but streams,
                       * is never active, and is the primary context for all else */
    atomic_uint greens; /* atomic; of a primary one: how many green ones it has */
    uint64_t joiner; /* a stream behind all streams of the context, 0 = none yet: stream_join.c */
    uint64_t join_event;
    bool has_barrier;              /* streams that are made have to wait for the joiner */
    struct stream *_Atomic legacy; /* of a share; others use the device's; under client->lock */
    CUfunc_cache cache;
    unsigned limits_set; /* bit l: the program has set limits[l] */
    uint64_t limits[CU_LIMIT_MAX];
    struct peer_access peers[ATTACH_DEVICES_MAX]; /* under client->lock */
    struct list link;                             /* client->contexts */
    struct list streams;                          /* these four under client->lock */
    struct list events;
    struct list modules;
    struct list arrays;
};

/* The primary contexts of all devices; called while attaching. 0 or -ENOMEM. */
int context_init_primaries(void);

/* A context that the caller is to announce to client->contexts, or NULL without memory. */
struct context *context_create(struct device *device);

/* The calling thread's context. CUDA_ERROR_INVALID_CONTEXT when it has none or that is not active,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED when it is gone. Takes no lock. */
CUresult context_current(struct context **ret_context);

/* The same for calls that reach the device: they report an earlier loss of the context. */
CUresult context_enter(struct context **ret_context);

/* Whether the calling thread has no current context. */
bool context_is_none(void);

/* The context in which the calling thread's streams are: `context`, or the green one of its device
 * that is current instead. */
struct context *context_of_streams(struct context *context);

/* The same for a context that a handle means, or the current one where it is NULL. */
CUresult context_resolve_streams(CUcontext handle, struct context **ret_context);

/* `handle`, or the current one where it is NULL. CUDA_ERROR_INVALID_CONTEXT unless it is active. */
CUresult context_resolve(CUcontext handle, struct context **ret_context);

/* The context behind a handle, active or not; NULL when there is none. */
struct context *context_lookup(CUcontext handle);

/* Read by threads that look for a stream; the partner is the one that makes a green context. */
static inline bool context_has_greens(const struct context *context)
{
    return atomic_load_explicit(&context->greens, memory_order_relaxed) != 0;
}

static inline bool context_active(const struct context *context)
{
    return atomic_load_explicit(&context->active, memory_order_acquire);
}
