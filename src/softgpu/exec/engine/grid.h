/* SPDX-License-Identifier: Apache-2.0 */
/* From a launch to a grid, if that is possible. */
#pragma once

#include "grid_state.h"

/*
 * Checks the launch against its kernel and the engine, and copies the launch and its parameters.
 * The grid belongs to the caller until it is in flight. The error is that of cuLaunchKernel. Any
 * thread may call it.
 */
CUresult grid_create(struct sg_engine *engine, const struct sg_launch *launch,
                     struct grid **ret_grid);
/* Of a grid that is not in flight, or of NULL. */
void grid_destroy(struct grid *grid);

/* Whether its blocks may run there. */
bool grid_allows_sm(const struct grid *grid, uint32_t sm);
