/* SPDX-License-Identifier: Apache-2.0 */
/* See sm_worker.h. */
#include "sm_worker.h"

#include <time.h>

#include "engine_state.h"
#include "grid_queue.h"
#include "sm_admission.h"

/* Blocks that all sleep leave the CPU to others. */
#define SLEEP_NS 50000

/* One turn of one block. False when the SM has nothing to do. */
static bool sm_turn_locked(struct worker *worker, struct sm *sm)
{
    struct sg_engine *engine = worker->engine;
    struct block *block = sm_admit_locked(worker, sm);
    unsigned at = sm->count - 1;
    if (!block) {
        if (sm->count == 0)
            return false;
        at = sm->next++ % sm->count;
        block = sm->blocks[at];
    }
    pthread_mutex_unlock(&engine->lock);
    bool goes_on = cluster_run(block);
    worker->sleepers = goes_on && block->asleep ? worker->sleepers + 1 : 0;
    if (goes_on)
        grid_queue_stop_if_late(block->grid);
    pthread_mutex_lock(&engine->lock);
    if (!goes_on)
        sm_retire_locked(worker, sm, at);
    return true;
}

static bool worker_round_locked(struct worker *worker)
{
    struct sg_engine *engine = worker->engine;
    bool worked = false;
    for (unsigned i = worker->index; i < engine->config.sm_count; i += engine->worker_count)
        worked |= sm_turn_locked(worker, &engine->sms[i]);
    return worked;
}

static bool all_sleep_locked(const struct worker *worker)
{
    const struct sg_engine *engine = worker->engine;
    unsigned blocks = 0;
    for (unsigned i = worker->index; i < engine->config.sm_count; i += engine->worker_count)
        blocks += engine->sms[i].count;
    return worker->sleepers > 0 && worker->sleepers >= blocks;
}

static void sleep_locked(struct worker *worker)
{
    const struct timespec pause = {.tv_nsec = SLEEP_NS};
    worker->sleepers = 0;
    pthread_mutex_unlock(&worker->engine->lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&worker->engine->lock);
}

/* No block is left to finish a grid that was aborted between two of its blocks. */
static bool finish_aborted_locked(struct sg_engine *engine)
{
    if (!engine->any_aborted)
        return false;
    engine->any_aborted = false;
    grid_queue_finish_stopped_locked(engine);
    return true;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct sg_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->lock);
    for (;;) {
        /* A round without work may have unlocked the lock, too. */
        uint64_t known = engine->wakes;
        bool finished = finish_aborted_locked(engine);
        if (worker_round_locked(worker) || engine->wakes != known || finished ||
            engine->any_aborted) {
            if (all_sleep_locked(worker))
                sleep_locked(worker);
            continue;
        }
        if (engine->stopping)
            break;
        pthread_cond_wait(&engine->work, &engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
    block_pool_fini(&worker->pool);
    return NULL;
}

bool sm_workers_start_locked(struct sg_engine *engine)
{
    while (engine->threads_started < engine->worker_count) {
        struct worker *worker = &engine->workers[engine->threads_started];
        *worker = (struct worker){.engine = engine, .index = engine->threads_started};
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
            return false;
        engine->threads_started++;
    }
    return true;
}
