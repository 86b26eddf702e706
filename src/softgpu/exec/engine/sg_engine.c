/* SPDX-License-Identifier: Apache-2.0 */
/* See sg_engine.h. An engine's creation and end, and the grids that come to it. */
#include "sg_engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "child_grid.h"
#include "engine_config.h"
#include "engine_state.h"
#include "grid.h"
#include "grid_queue.h"
#include "sm_worker.h"

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
        if (grid_queue_concerns(grid, space))
            return true;
    }
    for (const struct grid *grid = engine->finishing_grids; grid; grid = grid->next) {
        if (grid_queue_concerns(grid, space))
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
        if (grid_queue_concerns(grid, space))
            grid_queue_stop_locked(grid, result, message);
    }
    grid_queue_finish_stopped_locked(engine);
    while (any_in_flight_locked(engine, space))
        pthread_cond_wait(&engine->ended, &engine->lock);
    pthread_mutex_unlock(&engine->lock);
}

void sg_engine_abort_launch(struct sg_engine *engine, const void *user)
{
    pthread_mutex_lock(&engine->lock);
    for (struct grid *grid = engine->grids; grid; grid = grid->next) {
        if (grid->launch.user == user)
            grid_queue_stop_locked(grid, CUDA_SUCCESS, "");
    }
    engine->any_aborted = true;
    grid_queue_wake_locked(engine);
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
    grid->stop = grid_queue_fault;
    grid->child_params_size = child_grid_params_size;
    grid->launch_child = child_grid_launch;
    grid->copy_later = child_grid_copy_later;
    pthread_mutex_lock(&engine->lock);
    if (engine->stopping || !sm_workers_start_locked(engine)) {
        pthread_mutex_unlock(&engine->lock);
        grid_destroy(grid);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    grid_queue_add_locked(engine, grid);
    pthread_mutex_unlock(&engine->lock);
    return CUDA_SUCCESS;
}
