/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stream subsystem keeps for the server and for a session. Only its own files include
 * this.
 */
#pragma once

#include <stdatomic.h>

#include "fence.h"
#include "lending.h"
#include "stream.h"

struct server_streams {
    struct list observers; /* struct stream_observer */
    struct {
        unsigned workers;            /* clients with long work there */
        unsigned idle_rounds;        /* since when there is none */
    } long_work[ATTACH_DEVICES_MAX]; /* the watchdog's: long_work_watch.c */
    atomic_bool long_work_seen;      /* anywhere, and clients have been told */
    atomic_bool long_work_told;      /* as the daemon was told last */
    bool no_flow_control;            /* streams take all at once */
    atomic_uint borrowers;           /* clients that may borrow: lending.c */
};

/* What other threads may know about the stream of a fence word. */
struct in_flight {
    _Atomic uint32_t promised; /* the number that was last asked to be written */
    _Atomic uint32_t unfenced; /* 1 = there is work behind it */
};

struct session_streams {
    pthread_mutex_t lock; /* changes of the next, and of the driver's streams: idle.c */
    struct list of_device[SERVER_MAX_DEVICES];     /* struct stream */
    struct list ended;                             /* struct stream: ended_streams.c */
    unsigned refused;                              /* objects: refused_objects.c */
    struct in_flight in_flight[GPU_REGION_FENCES]; /* by fence word: fence.c */

    uint32_t
        host_wait_seq[GPU_REGION_HOST_WAITS]; /* what streams wait for in each host-wait word */
    struct list host_waits; /* struct host_wait: what they wait for elsewhere, in order */
    struct list *next_look; /* at which of them it is looked next: host_wait_record.c */
    unsigned host_wait_count;
    unsigned release_rounds; /* how often the waits of a client that has gone were ended */
    uint32_t given_last;     /* struct stream.word: which one got work in the last step of all */
    struct stream *needs_capacity; /* before the session's next command; NULL = none does */
    bool has_host_waits;           /* a stream has waited for the client, or for a word */

    /* What streams_progress() returns. */
    atomic_uint_fast64_t progressed_at, long_step_at;
    atomic_bool waits_in_flight;

    struct lending lending; /* under the server's lock */

    /* The watchdog's: long_work_watch.c. */
    uint64_t long_work_mask; /* bit i: long work on device i */
    bool may_ask;            /* for another lane; set before the client is served */
    bool move_wanted;        /* as the client was told last */

    atomic_bool has_asked; /* for another lane */
};

/* Tell all observers: the stream is created (0 or -ENOMEM), is about to get a stream of the driver,
 * or is about to end. */
int streams_announce_creation(struct stream *stream);
void streams_announce_ready(struct stream *stream);
void streams_announce_end(struct stream *stream);
