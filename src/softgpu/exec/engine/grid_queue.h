/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grids of an engine from their submission to their end, those served least recently first.
 * Functions with `_locked` are for callers that hold the engine's lock.
 */
#pragma once

#include "grid_state.h"

/* The grid goes into flight. */
void grid_queue_add_locked(struct sg_engine *engine, struct grid *grid);

/* The grid has been served, and comes last. */
void grid_queue_move_back_locked(struct sg_engine *engine, struct grid *grid);

/* A cluster of the grid has left its SM. A grid that has ended tells its owner so, and is gone; the
 * lock is released meanwhile. */
void grid_queue_end_cluster_locked(struct sg_engine *engine, struct grid *grid);

/* Ends all grids that are stopped and of which no block runs, as no block of theirs will. */
void grid_queue_finish_stopped_locked(struct sg_engine *engine);

/* Whether the grid works in that space; NULL: in any. */
bool grid_queue_concerns(const struct grid *grid, const struct sg_space *space);

/* No further block of the grid starts, and those that run end. */
void grid_queue_stop_locked(struct grid *grid, CUresult result, const char *message);

/* struct grid's `stop`. A fault is the end of the context: what else runs in its memory ends with
 * the same words. */
void grid_queue_fault(struct grid *grid, CUresult result, const char *message);

/* Ends a grid that runs for longer than the engine's limit. */
void grid_queue_stop_if_late(struct grid *grid);

/* A worker that has just found nothing to do looks again, and so do those that sleep. */
void grid_queue_wake_locked(struct sg_engine *engine);
