/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual SMs. Each belongs to one worker thread, which runs the resident blocks of its SMs in
 * round-robin order.
 *
 * An SM takes a new block when its last block has ended, or has used up its time slice and another
 * block fits. So blocks spread over the SMs first, and blocks that wait for each other all run.
 * Among grids the more urgent comes first; equals take turns. A cooperative grid comes to the SMs
 * as a whole.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "block.h"
#include "child_grid.h"
#include "engine_config.h"
#include "grid.h"
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

const struct sg_engine_config *engine_config(const struct sg_engine *engine)
{
    return &engine->config;
}

/* ---- Grids ---- */

static bool concerns(const struct grid *grid, const struct sg_space *space)
{
    return !space || grid->launch.space == space;
}

/* A worker that has just found nothing to do looks again, and so do those that sleep. */
static void wake_workers_locked(struct sg_engine *engine)
{
    engine->wakes++;
    pthread_cond_broadcast(&engine->work);
}

/* Others may have waited for its blocks to come to an SM. */
static void stop_locked(struct grid *grid, CUresult result, const char *message)
{
    if (grid->stopped)
        return;
    grid->result = result;
    snprintf(grid->message, sizeof(grid->message), "%s", message);
    __atomic_store_n(&grid->stopped, true, __ATOMIC_RELAXED);
    wake_workers_locked(grid->engine);
}

/* A fault is the end of the context: what else runs in its memory ends with the same words. */
static void grid_stop(struct grid *grid, CUresult result, const char *message)
{
    struct sg_engine *engine = grid->engine;
    pthread_mutex_lock(&engine->lock);
    for (struct grid *other = grid->stopped ? NULL : engine->grids; other; other = other->next) {
        if (other != grid && concerns(other, grid->launch.space))
            stop_locked(other, result, message);
    }
    stop_locked(grid, result, message);
    pthread_mutex_unlock(&engine->lock);
}

static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void stop_if_late(struct grid *grid)
{
    char message[256];
    uint64_t limit = grid->engine->config.timeout_ms;
    if (!limit || milliseconds() - grid->started <= limit)
        return;
    snprintf(message, sizeof(message), "kernel %.140s has run for more than %llu ms",
             grid->info->name, (unsigned long long)limit);
    grid_stop(grid, CUDA_ERROR_LAUNCH_TIMEOUT, message);
}

static void unlink_grid_locked(struct sg_engine *engine, struct grid *grid)
{
    struct grid **at = &engine->grids;
    while (*at != grid)
        at = &(*at)->next;
    *at = grid->next;
}

static void append_grid_locked(struct sg_engine *engine, struct grid *grid)
{
    struct grid **at = &engine->grids;
    while (*at)
        at = &(*at)->next;
    grid->next = NULL;
    *at = grid;
}

static bool has_ended(const struct grid *grid)
{
    return grid->running == 0 && (grid->stopped || grid->next_block == grid->block_count);
}

static void start_grid_locked(struct sg_engine *engine, struct grid *grid)
{
    append_grid_locked(engine, grid);
    wake_workers_locked(engine);
}

/* Tells the owner of a grid that it has ended. The lock is released meanwhile. */
static void tell_owner_locked(struct sg_engine *engine, struct grid *grid)
{
    grid->next = engine->finishing_grids;
    engine->finishing_grids = grid;
    pthread_mutex_unlock(&engine->lock);
    grid->launch.done(grid->launch.user, grid->result, grid->message);
    pthread_mutex_lock(&engine->lock);
    struct grid **at = &engine->finishing_grids;
    while (*at != grid)
        at = &(*at)->next;
    *at = grid->next;
    pthread_cond_broadcast(&engine->ended);
    pthread_mutex_unlock(&engine->lock);
    grid_destroy(grid);
    pthread_mutex_lock(&engine->lock);
}

/* Takes a grid that has ended out of flight. What its kernel has launched runs before its end is
 * told. */
static void finish_grid_locked(struct sg_engine *engine, struct grid *grid)
{
    unlink_grid_locked(engine, grid);
    struct grid *child = child_grid_next(&grid);
    if (child)
        start_grid_locked(engine, child);
    else
        tell_owner_locked(engine, grid);
}

/* A grid of which no block runs has no block that ends it: end it here. */
static bool finish_idle_locked(struct sg_engine *engine)
{
    for (struct grid *grid = engine->grids; grid; grid = grid->next) {
        if (grid->stopped && has_ended(grid)) {
            finish_grid_locked(engine, grid);
            return true;
        }
    }
    return false;
}

/* ---- Residency ---- */

static bool has_more_blocks(const struct grid *grid)
{
    return !grid->stopped && grid->next_block < grid->block_count;
}

static bool has_blocks_for(const struct sg_engine *engine, const struct sm *sm,
                           const struct grid *grid)
{
    struct share share = share_of_grid(grid);
    return has_more_blocks(grid) && grid_allows_sm(grid, sm->index) &&
           share_count(engine, &sm->used, &share) > 0;
}

/* The blocks of a cooperative grid wait for each other, so none starts before all have a place. */
static bool fits_whole(const struct sg_engine *engine, const struct grid *grid)
{
    struct share share = share_of_grid(grid);
    uint64_t blocks = 0;
    for (unsigned i = 0; i < engine->config.sm_count && blocks < grid->block_count; i++) {
        if (grid_allows_sm(grid, i))
            blocks += share_count(engine, &engine->sms[i].used, &share) * grid->cluster_size;
    }
    return blocks >= grid->block_count;
}

/* Of a cooperative grid that has more blocks: whether the other waits until all are on SMs. It
 * would take their places once some are. Before that it waits if it is later and no more urgent, as
 * on an H100, or the grid might never start. */
static bool goes_first(const struct grid *cooperative, const struct grid *other)
{
    int priority = cooperative->launch.priority;
    if (cooperative->next_block > 0 || priority != other->launch.priority)
        return cooperative->next_block > 0 || priority < other->launch.priority;
    return cooperative->number < other->number;
}

static bool must_wait_locked(const struct sg_engine *engine, const struct sm *sm,
                             const struct grid *grid)
{
    bool is_new = grid->launch.cooperative && grid->next_block == 0;
    for (const struct grid *other = engine->grids; other; other = other->next) {
        if (other != grid && other->launch.cooperative && has_more_blocks(other) &&
            (is_new || grid_allows_sm(other, sm->index)) && goes_first(other, grid))
            return true;
    }
    return is_new && !fits_whole(engine, grid);
}

/* The most urgent grid that has a block for this SM; among equals the one served least recently. */
static struct grid *choose_grid_locked(struct sg_engine *engine, const struct sm *sm)
{
    struct grid *best = NULL;
    for (struct grid *grid = engine->grids; grid; grid = grid->next) {
        bool better = !best || grid->launch.priority < best->launch.priority;
        if (better && has_blocks_for(engine, sm, grid) && !must_wait_locked(engine, sm, grid))
            best = grid;
    }
    return best;
}

/* The first block of a cooperative grid makes workers look for the others, the last one lets other
 * grids on. */
static void wake_for_cooperative_locked(struct sg_engine *engine, const struct grid *grid,
                                        uint64_t number)
{
    if (grid->launch.cooperative && (number == 0 || grid->next_block == grid->block_count))
        wake_workers_locked(engine);
}

/* Brings one more cluster onto the SM; NULL when there is none for it. */
static struct block *admit_locked(struct worker *worker, struct sm *sm)
{
    struct sg_engine *engine = worker->engine;
    struct grid *grid = choose_grid_locked(engine, sm);
    if (!grid)
        return NULL;
    uint64_t number = grid->next_block;
    grid->next_block += grid->cluster_size;
    if (number == 0)
        grid->started = milliseconds();
    grid->running++;
    struct share share = share_of_grid(grid);
    share_add(&sm->used, &share);
    wake_for_cooperative_locked(engine, grid, number);
    if (engine->grids->next) {
        unlink_grid_locked(engine, grid);
        append_grid_locked(engine, grid);
    }
    pthread_mutex_unlock(&engine->lock);
    struct block *block = cluster_create(grid, number, sm->index, &worker->pool);
    if (!block)
        grid_stop(grid, CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block");
    pthread_mutex_lock(&engine->lock);
    if (!block) {
        share_take_away(&sm->used, &share);
        grid->running--;
        while (finish_idle_locked(engine))
            ;
        return NULL;
    }
    sm->blocks[sm->count++] = block;
    return block;
}

static void retire_locked(struct worker *worker, struct sm *sm, unsigned at)
{
    struct block *block = sm->blocks[at];
    struct grid *grid = block->grid;
    struct share share = share_of_grid(grid);
    share_take_away(&sm->used, &share);
    sm->blocks[at] = sm->blocks[--sm->count];
    sm->next = 0;
    cluster_destroy(block, &worker->pool);
    bool stopped = grid->stopped;
    grid->running--;
    if (has_ended(grid))
        finish_grid_locked(worker->engine, grid);
    while (stopped && finish_idle_locked(worker->engine))
        ;
}

/* ---- Workers ---- */

/* One turn of one block. False when the SM has nothing to do. */
static bool sm_turn_locked(struct worker *worker, struct sm *sm)
{
    struct sg_engine *engine = worker->engine;
    struct block *block = admit_locked(worker, sm);
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
        stop_if_late(block->grid);
    pthread_mutex_lock(&engine->lock);
    if (!goes_on)
        retire_locked(worker, sm, at);
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

/* Blocks that all sleep leave the CPU to others. */
#define SLEEP_NS 50000

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
    while (finish_idle_locked(engine))
        ;
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

static bool start_workers_locked(struct sg_engine *engine)
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

/* ---- Creating and destroying ---- */

struct sg_engine *sg_engine_create(const struct sg_engine_config *given)
{
    struct sg_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return NULL;
    engine->config = config_complete(given);
    unsigned threads = engine->config.host_threads;
    engine->worker_count = threads < engine->config.sm_count ? threads : engine->config.sm_count;
    engine->sms = calloc(engine->config.sm_count, sizeof(*engine->sms));
    engine->workers = calloc(engine->worker_count, sizeof(*engine->workers));
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->work, NULL);
    pthread_cond_init(&engine->ended, NULL);
    if (!engine->sms || !engine->workers) {
        sg_engine_destroy(engine);
        return NULL;
    }
    for (unsigned i = 0; i < engine->config.sm_count; i++)
        engine->sms[i].index = i;
    return engine;
}

static bool any_in_flight_locked(const struct sg_engine *engine, const struct sg_space *space)
{
    for (const struct grid *grid = engine->grids; grid; grid = grid->next) {
        if (concerns(grid, space))
            return true;
    }
    for (const struct grid *grid = engine->finishing_grids; grid; grid = grid->next) {
        if (concerns(grid, space))
            return true;
    }
    return false;
}

void sg_engine_abort(struct sg_engine *engine, struct sg_space *space, CUresult result)
{
    pthread_mutex_lock(&engine->lock);
    for (struct grid *grid = engine->grids; grid; grid = grid->next) {
        char message[256];
        snprintf(message, sizeof(message), "kernel %.140s was ended", grid->info->name);
        if (concerns(grid, space))
            stop_locked(grid, result, message);
    }
    while (finish_idle_locked(engine))
        ;
    while (any_in_flight_locked(engine, space))
        pthread_cond_wait(&engine->ended, &engine->lock);
    pthread_mutex_unlock(&engine->lock);
}

void sg_engine_abort_launch(struct sg_engine *engine, const void *user)
{
    pthread_mutex_lock(&engine->lock);
    for (struct grid *grid = engine->grids; grid; grid = grid->next) {
        if (grid->launch.user == user)
            stop_locked(grid, CUDA_SUCCESS, "");
    }
    engine->any_aborted = true;
    wake_workers_locked(engine);
    pthread_mutex_unlock(&engine->lock);
}

void sg_engine_destroy(struct sg_engine *engine)
{
    if (!engine)
        return;
    sg_engine_abort(engine, NULL, CUDA_ERROR_DEINITIALIZED);
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    for (unsigned i = 0; i < engine->threads_started; i++)
        pthread_join(engine->workers[i].thread, NULL);
    pthread_mutex_destroy(&engine->lock);
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->ended);
    free(engine->sms);
    free(engine->workers);
    free(engine);
}

/* ---- Launching ---- */

CUresult sg_engine_submit(struct sg_engine *engine, const struct sg_launch *launch)
{
    struct grid *grid;
    CUresult result = grid_create(engine, launch, &grid);
    if (result != CUDA_SUCCESS)
        return result;
    grid->stop = grid_stop;
    grid->child_params_size = child_grid_params_size;
    grid->launch_child = child_grid_launch;
    grid->copy_later = child_grid_copy_later;
    pthread_mutex_lock(&engine->lock);
    if (engine->stopping || !start_workers_locked(engine)) {
        pthread_mutex_unlock(&engine->lock);
        grid_destroy(grid);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    start_grid_locked(engine, grid);
    pthread_mutex_unlock(&engine->lock);
    return CUDA_SUCCESS;
}
