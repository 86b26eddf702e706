/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of the pool: worker_pool.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "list.h"
#include "lock.h"
#include "pool_size.h"
#include "server_protocol.h"
#include "worker_places.h"

struct pool_worker {
    pthread_t thread;
    struct lock lock;
    struct list arrivals;         /* struct pool_seat, under the lock */
    _Atomic uint32_t arrived;     /* counts them; the worker sleeps on it */
    struct list seats;            /* struct pool_seat: the worker's own */
    atomic_uint seated;           /* how many sessions it has, those that arrive included */
    atomic_uint share;            /* how many it shall have */
    unsigned number;              /* from 1 on */
    _Atomic uint64_t all_ns;      /* of its rounds with sessions, so far: the worker counts */
    _Atomic uint64_t busy_ns;     /* of those in which a command was there */
    _Atomic uint64_t turns;       /* of sessions with a command there */
    struct pool_time seen_time;   /* the watchdog's, of its last round */
    uint64_t seen_turns;          /* likewise */
    uint64_t turns_each;          /* of each of its sessions since then: likewise */
    struct pool_turns recent;     /* likewise */
    const struct device *current; /* whose context the thread is in */
    struct worker_pool *pool;
};

struct worker_pool {
    atomic_bool wanted;
    atomic_bool trains;
    atomic_bool sleeps;
    atomic_uint active; /* the first so many workers get sessions */
    struct pool_size size;
    struct worker_place places[SERVER_CLIENTS_MAX]; /* the watchdog's */
    unsigned count;
    struct pool_worker workers[];
};

/* Partner: arrive() and give_away() in worker_pool.c. */
static inline unsigned pool_load_of(const struct pool_worker *worker)
{
    return atomic_load_explicit(&worker->seated, memory_order_relaxed);
}
