/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of a client, and their samples. Only the accounting files include this.
 *
 * A counter has one writer, so counter_add() loads and stores it in two steps. Any thread may read
 * it by counter_get().
 */
#pragma once

#include "accounting.h"
#include "copy.h"
#include "stream_sample.h"

typedef atomic_uint_fast64_t counter_t;

/* Of all clients together. */
struct server_accounting {
    counter_t kernels_ns[SERVER_MAX_DEVICES]; /* in which any client had kernels on the device */
    counter_t shared_ns;                      /* in which several had, sum of all devices */
    /* The main thread's alone: as accounting_kernels_percent() saw it last. */
    uint64_t seen_ns[SERVER_MAX_DEVICES], seen_at;
};

/* A client at the moment of a sample. */
struct client_sample {
    struct streams_sample streams;
    double sms[SERVER_MAX_DEVICES];     /* multiprocessors that it takes */
    bool is_beside[SERVER_MAX_DEVICES]; /* another client has kernels there, too */
    uint32_t queue_bytes, taken;        /* channel_server_queued() */
};

struct session_accounting {
    /* The sampling thread's to write. */
    counter_t gpu_ns[SERVER_MAX_DEVICES], sm_ns[SERVER_MAX_DEVICES];
    counter_t shared_ns, copy_ns, queued_ns;
    counter_t queued_byte_ns;           /* bytes that waited, times time, in units of 2^10 */
    counter_t taken_bytes, queue_bytes; /* commands' */
    /* The main thread's to write. */
    counter_t stalls, stalled_ms;
    char stall_cause[sizeof(((struct server_usage *)NULL)->stall_cause)];
    /* The session's thread's to write. */
    counter_t evictions, swapped_out, swapped_in;

    /* The sampling thread's alone. */
    struct client_sample last, now;
    uint64_t work;       /* launches and copies at the last sample */
    uint64_t quiet_ns;   /* for how long these have not changed */
    bool has_been_asked; /* the driver has reported all streams idle since then */
};

static inline void counter_add(counter_t *counter, uint64_t amount)
{
    uint64_t so_far = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, so_far + amount, memory_order_relaxed);
}

static inline uint64_t counter_get(const counter_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Samples all clients and charges each for the `interval_ns` since the last sample. Returns whether
 * a client was active. Takes the server's lock. */
bool accounting_round(struct server *server, uint64_t interval_ns);
