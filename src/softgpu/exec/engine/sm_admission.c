/* SPDX-License-Identifier: Apache-2.0 */
/* See sm_admission.h. */
#include "sm_admission.h"

#include "grid.h"
#include "grid_queue.h"

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
        grid_queue_wake_locked(engine);
}

struct block *sm_admit_locked(struct worker *worker, struct sm *sm)
{
    struct sg_engine *engine = worker->engine;
    struct grid *grid = choose_grid_locked(engine, sm);
    if (!grid)
        return NULL;
    uint64_t number = grid->next_block;
    grid->next_block += grid->cluster_size;
    if (number == 0)
        grid->started = engine_milliseconds();
    grid->running++;
    struct share share = share_of_grid(grid);
    share_add(&sm->used, &share);
    wake_for_cooperative_locked(engine, grid, number);
    if (engine->grids->next)
        grid_queue_move_back_locked(engine, grid);
    pthread_mutex_unlock(&engine->lock);
    struct block *block = cluster_create(grid, number, sm->index, &worker->pool);
    if (!block)
        grid_queue_fault(grid, CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block");
    pthread_mutex_lock(&engine->lock);
    if (!block) {
        share_take_away(&sm->used, &share);
        grid->running--;
        grid_queue_finish_stopped_locked(engine);
        return NULL;
    }
    sm->blocks[sm->count++] = block;
    return block;
}

void sm_retire_locked(struct worker *worker, struct sm *sm, unsigned at)
{
    struct block *block = sm->blocks[at];
    struct grid *grid = block->grid;
    struct share share = share_of_grid(grid);
    share_take_away(&sm->used, &share);
    sm->blocks[at] = sm->blocks[--sm->count];
    sm->next = 0;
    cluster_destroy(block, &worker->pool);
    grid_queue_end_cluster_locked(worker->engine, grid);
}
