/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: a primary one for each device, and those that programs create. */
#ifndef FUNNEL_CLIENT_CONTEXT_H
#define FUNNEL_CLIENT_CONTEXT_H

#include "client.h"

/* A context whose memory another one may touch, as both were then. */
struct peer_access {
    CUcontext peer;
    uint64_t peer_epoch, epoch;
};

struct context {
    CUcontext handle;
    unsigned long long id;
    struct device *device;
    bool primary;
    bool active;       /* atomic; of a primary one: somebody retains it */
    unsigned retained; /* under client->lock */
    unsigned flags;
    unsigned version;
    uint64_t epoch;        /* grows with every reset */
    uint32_t share;        /* of the client's multiprocessors, 0 = all of them: see affinity.c */
    uint32_t sm_count;     /* in that share */
    struct stream *legacy; /* of a share; others use the device's; under client->lock */
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

/* What cuCtxCreate does. With a share, its streams run on that part of the device. */
CUresult context_open(CUcontext *pctx, unsigned flags, CUdevice dev, uint32_t share,
                      uint32_t sm_count);

/* Sets its limits again, with another server. */
CUresult context_replay_limits(const struct context *context);

/* How many multiprocessors a device says it has, here and now. */
int affinity_sm_count(const struct device *device);

/* Gives a context's share back, when its streams are gone. */
void affinity_release(struct context *context);

/* The calling thread's context, if it can be used. */
CUresult context_current(struct context **ret_context);

/* The same for calls that reach the device: they report what has been lost before. */
CUresult context_enter(struct context **ret_context);

/* The same for calls that might make capturing streams wait, such as an allocation. */
CUresult context_enter_unsafe(struct context **ret_context);

/* `handle`, or the current one where it is NULL. */
CUresult context_resolve(CUcontext handle, struct context **ret_context);

/* The context behind a handle, active or not; NULL when there is none. */
struct context *context_lookup(CUcontext handle);

static inline bool context_active(const struct context *context)
{
    return __atomic_load_n(&context->active, __ATOMIC_ACQUIRE);
}

/* The device behind an ordinal, NULL when there is none. */
struct device *device_lookup(CUdevice ordinal);

/* The same by the server's number. */
struct device *device_with_index(uint64_t index);

/* The value of an attribute, 0 when the server does not know it. */
int device_attribute(const struct device *device, CUdevice_attribute attribute);

#endif
