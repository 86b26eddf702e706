/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams.
 */
#pragma once

#include "capture.h"
#include "cuda_sm_resource.h"
#include "cuda_stream_attributes.h"
#include "exec.h"
#include "schedule.h"
#include "soft.h"

#define SOFT_LEAST_PRIORITY 0
#define SOFT_GREATEST_PRIORITY (-5)

struct stream {
    uint64_t handle;
    unsigned long long id;
    struct context *context;
    struct green *green; /* in which it is, or NULL */
    unsigned flags;
    int priority;
    struct cuda_stream_attributes attributes;
    bool confined;      /* to some of the device's multiprocessors: */
    struct sm_set part; /* none of them where it is not */
    bool detached;      /* its green context is gone */
    bool destroyed;     /* goes when its last operation has finished */
    struct operation *first;
    struct operation *last;
    unsigned queued; /* operations in it that have not finished */
    struct capture_stream capture;
    struct list in_context;
};

/* The nearest that there is. */
static inline int stream_clamp_priority(int priority)
{
    if (priority > SOFT_LEAST_PRIORITY)
        return SOFT_LEAST_PRIORITY;
    return priority < SOFT_GREATEST_PRIORITY ? SOFT_GREATEST_PRIORITY : priority;
}

/* How many multiprocessors clusters of so many blocks may run on; 0 = they cannot be launched. */
unsigned stream_sms_for_cluster(const struct stream *stream, unsigned cluster_size);

struct stream *stream_create_locked(struct context *context, unsigned flags, int priority);
/* Frees a destroyed stream that has nothing left to do. */
void stream_reap_locked(struct stream *stream);
void stream_destroy_locked(struct stream *stream);
/* The stream meant by a handle in the current context, which must be fit for work. For work that
 * can be captured: the caller checks stream->capture. */
CUresult stream_work_locked(CUstream handle, struct stream **ret_stream);
/* As stream_work_locked(), for work that cannot be captured: an error when the stream captures. */
CUresult stream_use_locked(CUstream handle, struct stream **ret_stream);
/* As stream_work_locked(), for queries: also when the context has failed. */
CUresult stream_find_locked(CUstream handle, struct stream **ret_stream);

/* Waits for all that is in the stream now, and returns the context's sticky error. Releases
 * soft_lock meanwhile. */
CUresult stream_synchronize_locked(struct stream *stream);
