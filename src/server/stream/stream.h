/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of a client.
 *
 * Every stream is a non-blocking stream of the driver, so that no client waits for another. CUDA's
 * rule about the legacy default stream is kept for each client by itself: see stream_order.h.
 *
 * Functions are the session thread's unless their comment says otherwise.
 */
#pragma once

#include "print_checkpoint.h"
#include "server.h"
#include "session.h"
#include "stream_flow.h"
#include "stream_order.h"

struct in_flight;
struct sm_share;
struct stream_launch;

struct stream {
    struct list link; /* of its device in the session */
    struct session *session;
    const struct device *device;
    struct sm_share *sm_share; /* where it runs */
    int priority;              /* as the client wants it */
    int granted_priority;      /* as the driver's stream has it */
    CUstream driver;           /* NULL when it was refused: by the driver, or by a quota */
    bool uncharged;            /* a quota refused it: refused_objects.h */
    CUstream other; /* the driver's stream in the other part, where it has run: driver_stream.h */
    bool is_away;   /* `driver` is in the lent part */
    uint32_t word;  /* index of its fence word */
    _Atomic uint32_t *fence;     /* that word */
    struct in_flight *in_flight; /* what other threads may know about it: fence.c */
    bool legacy;                 /* the client's legacy default stream */
    bool blocking;               /* keeps order with the legacy stream */

    /* Once the stream has reached the fence host_wait_fence, it waits for the last callback that it
     * was given: for host_wait_seq in the word host_wait_word. */
    bool waits_for_host; /* it was given a callback */
    uint32_t host_wait_word, host_wait_seq, host_wait_fence;

    uint64_t work;               /* how many submissions it was given */
    atomic_uint_fast64_t blocks; /* of the kernel that it was given last; 0 = that was none */
    uint64_t legacy_seen;        /* blocking: up to here it waits for the legacy stream's work */
    uint64_t seen_by_legacy;     /* blocking: up to here the legacy stream waits for its work */
    CUevent order;               /* recorded behind ordered_work; created when first needed */
    uint64_t ordered_work;

    uint64_t shared_copy_work;    /* owned by the copy code: shared_copy_stream.h */
    struct stream_launch *launch; /* owned by the launch code */
    struct stream_flow flow;
    uint64_t print_checkpoint; /* print_checkpoint.c */

    uint32_t watched_fence, watched_rounds; /* the watchdog's: long_work_watch.c */
};

/* Beyond the one submission that stream_end_work() counts, `count` more were given. */
static inline void stream_count_more(struct stream *stream, unsigned count)
{
    stream->flow.control.left -= (int32_t)count;
}

/* After that work: writes the fence `seq`, also behind work that failed, for a thread may wait for
 * it; 0 = the work has no fence. Returns `result`, or the fence's own failure. */
CUresult stream_end_work(struct stream *stream, uint32_t seq, CUresult result);

/* The same with another function to write the fence. */
typedef CUresult fence_writer(struct stream *stream, uint32_t seq);
CUresult stream_end_by(struct stream *stream, uint32_t seq, CUresult result, fence_writer *write);

/* What the stream is given next: a kernel of this grid, or something else. Partner, on another
 * thread: streams_sample(). And stream_ends_in_kernels(). */
static inline void stream_note_kernel(struct stream *stream, const uint32_t grid[3])
{
    atomic_store_explicit(&stream->blocks, (uint64_t)grid[0] * grid[1] * grid[2],
                          memory_order_relaxed);
}

static inline void stream_note_other_work(struct stream *stream)
{
    atomic_store_explicit(&stream->blocks, 0, memory_order_relaxed);
}

/* Whether that was a kernel. */
static inline bool stream_ends_in_kernels(const struct stream *stream)
{
    return atomic_load_explicit(&stream->blocks, memory_order_relaxed) != 0;
}

/* Whether the stream and its work are confined to a part of the device's multiprocessors. */
bool stream_is_confined(const struct stream *stream);

/* The client's streams of a device: struct stream. */
struct list *session_device_streams(const struct session *session, const struct device *device);

/* Takes the stream out of the list in which it is. */
void stream_unlist(struct stream *stream);

/* Ends a stream that is neither in the handle table nor in a list any more, in its context. It gets
 * no more work, and other subsystems forget it. */
void stream_close(struct stream *stream);

/* After stream_close(): destroys the driver's stream, whose work goes on, and frees the stream. */
void stream_destroy(struct stream *stream);

/* Whether all of the client's streams are idle. A fatal error of the driver ends the server. */
bool streams_are_idle(struct session *session);

/* Ends all streams, which are idle, and gives the client's partitions back. */
void streams_destroy_all(struct session *session);

/* The same, and ends all events; the handles of both are free again. */
void streams_forget_all(struct session *session);

/* With the lock of the session's streams, in the context of the stream: whether it has work. A
 * stream whose fences are all written has none, so most are passed by without a call of the driver.
 */
bool stream_is_busy(const struct stream *stream);

/* ---- the parts of the server and of a session: stream_state.c ---- */

/* A subsystem that keeps something for each stream. Any of the functions may be NULL. */
struct stream_observer {
    struct list link;
    int (*created)(struct stream *stream); /* 0 or -ENOMEM: then the stream is not created */
    void (*ready)(struct stream *stream);  /* it is about to get a stream of the driver, the first
                                            * or another, with granted_priority */
    void (*closing)(struct stream *stream);
};

/* 0 or -ENOMEM. */
int server_streams_init(struct server *server);
void server_streams_fini(struct server *server);

/* Before there are sessions. The observer stays the caller's and must outlive the server. */
void server_streams_observe(struct server *server, struct stream_observer *observer);

/* The part of a session. 0 or -ENOMEM. */
int session_streams_init(struct session *session);
void session_streams_fini(struct session *session);
