/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launch subsystem keeps for the server, a session, a stream and a device. Only its own
 * files include this.
 */
#pragma once

#include "graph_batches.h"
#include "hold_demand.h"
#include "launch_batch.h"
#include "server.h"
#include "server_module.h"
#include "session.h"
#include "stream.h"

struct server_launch {
    bool no_batching;  /* every launch goes to the driver by itself: FUNNEL_OFF=launch-batching */
    atomic_uint holds; /* enum hold_kind: context_hold.h */
    atomic_bool demand_told; /* what the daemon has been told: context_hold_tell_demand() */
    struct stream_observer stream_observer;
    struct module_observer module_observer;
};

struct session_launch {
    struct launch_batch batch; /* launches that the driver has not got yet */
    atomic_uint_fast64_t count;
    atomic_uint_fast64_t lone; /* of them, those made alone and without a fence */
    atomic_uint_fast64_t fences;
    uint64_t last_function; /* handle of what was launched last */
    pthread_mutex_t lock;   /* last_kernel, which fault reports read */
    char last_kernel[128];
};

/* A launch and its fence can go to the driver in two ways. Which is faster depends on the other
 * clients, because the fence kernel has to find space on the GPU. So both are timed, from launch to
 * launch of a client that waits in between. */
enum fence_path { FENCE_BY_KERNEL, FENCE_BY_DRIVER, FENCE_PATHS };

struct fence_path_probe {
    uint64_t took_ns[FENCE_PATHS]; /* moving averages; 0 = not known */
    enum fence_path path;          /* of the launch that was set aside last */
    uint64_t since;                /* clock_ns() of its fence; 0 = it had none yet */
    uint32_t seq;                  /* that fence */
    unsigned turn;
};

struct stream_launch {
    struct graph_batches graph_batches; /* for several launches at a time */
    uint64_t lone_work; /* the stream's `work` when a launch came without others beside it */
    int fence_trust;    /* above 0: a fence mostly follows such a launch at once */
    uint32_t held;      /* the last fence behind which a hold was wanted */
    struct fence_path_probe fence_path_probe; /* of such a launch and its fence */
    CUdeviceptr fence_counter;                /* fence_counter.h; 0 = none yet */
    uint32_t fence_counter_value; /* its value when all launches that were made are done */
};

struct device_launch {
    struct function *fill_kernel;          /* NULL: the driver makes all memsets */
    struct function *fence_kernel;         /* NULL: the driver writes all fences */
    struct fence_counters *fence_counters; /* NULL: the kernel is given each number */
    struct hold_demand hold_demand;        /* under the lock of `hold` */
    struct context_hold *hold;             /* NULL: critical clients have no holds */
};
