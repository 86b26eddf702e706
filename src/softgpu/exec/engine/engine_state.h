/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine with its virtual SMs and their worker threads. Only the engine's files include this.
 * All of it is under the engine's lock, but for what a worker alone uses.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "block.h"
#include "residency.h"

struct sm {
    uint32_t index;
    struct block *blocks[MAX_RESIDENT]; /* the first of each cluster */
    unsigned count;
    unsigned next; /* whose turn it is */
    struct share used;
};

struct worker {
    struct sg_engine *engine;
    unsigned index;
    pthread_t thread;
    struct block_pool pool;
    unsigned sleepers; /* turns in a row in which a block only slept */
};

struct sg_engine {
    struct sg_engine_config config;
    pthread_mutex_t lock;
    pthread_cond_t work;          /* workers wait here */
    pthread_cond_t ended;         /* sg_engine_abort waits here */
    struct grid *grids;           /* in flight, those served least recently first */
    struct grid *finishing_grids; /* their done callbacks run */
    uint64_t wakes;               /* how often there was news for workers */
    struct sm *sms;
    struct worker *workers;
    unsigned worker_count;
    unsigned threads_started;
    bool any_aborted; /* sg_engine_abort_launch() has stopped a grid of which no block may run */
    bool stopping;
};

static inline uint64_t engine_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
