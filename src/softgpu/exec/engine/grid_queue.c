/* SPDX-License-Identifier: Apache-2.0 */
/* See grid_queue.h. */
#include "grid_queue.h"

#include <stdio.h>

#include "child_grid.h"
#include "engine_state.h"
#include "grid.h"

bool grid_queue_concerns(const struct grid *grid, const struct sg_space *space)
{
    return !space || grid->launch.space == space;
}

void grid_queue_wake_locked(struct sg_engine *engine)
{
    engine->wakes++;
    pthread_cond_broadcast(&engine->work);
}

/* Others may have waited for its blocks to come to an SM. */
void grid_queue_stop_locked(struct grid *grid, CUresult result, const char *message)
{
    if (grid->stopped)
        return;
    grid->result = result;
    snprintf(grid->message, sizeof(grid->message), "%s", message);
    __atomic_store_n(&grid->stopped, true, __ATOMIC_RELAXED);
    grid_queue_wake_locked(grid->engine);
}

void grid_queue_fault(struct grid *grid, CUresult result, const char *message)
{
    struct sg_engine *engine = grid->engine;
    pthread_mutex_lock(&engine->lock);
    for (struct grid *other = grid->stopped ? NULL : engine->grids; other; other = other->next) {
        if (other != grid && grid_queue_concerns(other, grid->launch.space))
            grid_queue_stop_locked(other, result, message);
    }
    grid_queue_stop_locked(grid, result, message);
    pthread_mutex_unlock(&engine->lock);
}

void grid_queue_stop_if_late(struct grid *grid)
{
    char message[256];
    uint64_t limit = grid->engine->config.timeout_ms;
    if (!limit || engine_milliseconds() - grid->started <= limit)
        return;
    snprintf(message, sizeof(message), "kernel %.140s has run for more than %llu ms",
             grid->info->name, (unsigned long long)limit);
    grid_queue_fault(grid, CUDA_ERROR_LAUNCH_TIMEOUT, message);
}

static void unlink_locked(struct sg_engine *engine, struct grid *grid)
{
    struct grid **at = &engine->grids;
    while (*at != grid)
        at = &(*at)->next;
    *at = grid->next;
}

static void append_locked(struct sg_engine *engine, struct grid *grid)
{
    struct grid **at = &engine->grids;
    while (*at)
        at = &(*at)->next;
    grid->next = NULL;
    *at = grid;
}

/* No block of it runs, and none will. */
static bool has_ended(const struct grid *grid)
{
    return grid->running == 0 && (grid->stopped || grid->next_block == grid->block_count);
}

void grid_queue_add_locked(struct sg_engine *engine, struct grid *grid)
{
    append_locked(engine, grid);
    grid_queue_wake_locked(engine);
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
static void finish_locked(struct sg_engine *engine, struct grid *grid)
{
    unlink_locked(engine, grid);
    struct grid *child = child_grid_next(&grid);
    if (child)
        grid_queue_add_locked(engine, child);
    else
        tell_owner_locked(engine, grid);
}

/* A grid of which no block runs has no block that ends it: end it here. */
static bool finish_one_locked(struct sg_engine *engine)
{
    for (struct grid *grid = engine->grids; grid; grid = grid->next) {
        if (grid->stopped && has_ended(grid)) {
            finish_locked(engine, grid);
            return true;
        }
    }
    return false;
}

void grid_queue_finish_stopped_locked(struct sg_engine *engine)
{
    while (finish_one_locked(engine))
        ;
}

void grid_queue_end_cluster_locked(struct sg_engine *engine, struct grid *grid)
{
    bool stopped = grid->stopped;
    grid->running--;
    if (has_ended(grid))
        finish_locked(engine, grid);
    if (stopped)
        grid_queue_finish_stopped_locked(engine);
}

void grid_queue_move_back_locked(struct sg_engine *engine, struct grid *grid)
{
    unlink_locked(engine, grid);
    append_locked(engine, grid);
}
