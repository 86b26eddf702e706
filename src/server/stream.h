/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of a client, and the fence behind its work.
 *
 * Every stream is a non-blocking stream of the driver, so that no client waits for another. CUDA's
 * rule about the legacy default stream is rebuilt here for each client by itself: see stream.c.
 */
#pragma once

#include "graph_batch.h"
#include "session.h"

/* A launch and its fence can go to the driver in two ways. Which is faster depends on the others:
 * our kernel has to find room on the GPU. So both are timed, from launch to launch of a client that
 * waits in between. */
enum fence_path { FENCE_BY_KERNEL, FENCE_BY_DRIVER, FENCE_PATHS };

struct fence_path_probe {
    uint64_t took_ns[FENCE_PATHS]; /* lately; 0 = not known */
    enum fence_path path;          /* of the launch that was set aside last */
    uint64_t since;                /* clock_ns() of its fence; 0 = it had none yet */
    uint32_t seq;                  /* that fence */
    unsigned turn;
};

struct stream {
    struct list link;
    struct session *session;
    const struct device *device;
    struct sm_share *sm_share; /* where it runs */
    int priority;              /* as the client wants it */
    CUstream driver;           /* NULL when the driver refused to make it */
    uint32_t word;             /* index of its fence word */
    bool legacy;               /* the client's legacy default stream */
    bool blocking;             /* keeps order with the legacy stream */
    bool waits_for_host; /* was given a callback: the last one waits in word `host_wait_word` for
                            host_wait_seq, */
    uint32_t host_wait_word, host_wait_seq,
        host_wait_fence; /* once the stream has got to host_wait_fence */

    struct graph_batches graph_batches; /* for many launches at a time */
    uint64_t work;                      /* how many pieces of work it was given */
    uint64_t shared_copy_work;          /* `work` behind the last that went up in the lane:
                                           shared_copy_stream.h */
    uint64_t lone_work;                 /* work, when a launch came without others beside it */
    int fence_trust;                    /* above 0: a fence mostly follows such a launch at once */
    struct fence_path_probe fence_path_probe; /* of such a launch and its fence */
    CUdeviceptr fence_counter;                /* fence_counter.h; 0 = none yet */
    uint32_t fence_counter_value; /* the number that is in it when all launches made are done */
    uint64_t legacy_seen;         /* blocking: up to here it waits for the legacy stream's work */
    uint64_t seen_by_legacy;      /* blocking: up to here the legacy stream waits for its work */
    CUevent order;                /* recorded behind ordered_work; made when first needed */
    uint64_t ordered_work;
};

/* Before work is put into a stream: enters its context and orders it against the legacy stream. */
CUresult stream_begin(struct stream *stream);

/* After it: writes the fence, also behind work that failed, for somebody may wait for it. Returns
 * `result`, or the fence's own failure. */
CUresult stream_end(struct stream *stream, uint32_t seq, CUresult result);

/* The same with another way to write it: fence_write() or copy_fence_write(). */
typedef CUresult fence_writer(struct stream *stream, uint32_t seq);
CUresult stream_end_by(struct stream *stream, uint32_t seq, CUresult result, fence_writer *write);

/* Makes the driver's stream anew, in the partition and with the priority that the client has now.
 * What was put into the old one comes first. */
CUresult stream_renew(struct stream *stream);

/* The priority that a client gets when it asks for this one. */
int stream_grant_priority(const struct session *session, const struct device *device, int asked);

/* Ends a stream that is not in the handle table any more. */
void stream_destroy(struct stream *stream);
