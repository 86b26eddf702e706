/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that kernels launch. A child belongs to its parent until it is in flight, and the parent
 * stays until its last child has ended.
 */
#pragma once

#include "grid_state.h"

/* struct grid's functions of these names: on engine threads, while a block of the grid runs. */
bool child_grid_params_size(const struct grid *grid, uint64_t function, uint32_t *ret_size);
uint32_t child_grid_launch(struct grid *parent, const struct child_launch *launch);
uint32_t child_grid_copy_later(struct grid *parent, const struct child_copy *copy);

/* A grid has ended, and is not in flight any more. The child that goes into flight next, its own or
 * that of an ancestor, after the copies in front of it. Ancestors that have ended with it are gone
 * then, and so is it. NULL when there is none: *grid is the launch then that the device's owner
 * made, and holds the result of all. A grid that was stopped, or failed, takes the children that
 * have not started along. */
struct grid *child_grid_next(struct grid **grid);
