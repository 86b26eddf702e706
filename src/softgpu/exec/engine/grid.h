/* SPDX-License-Identifier: Apache-2.0 */
/* From a launch to a grid, if that is possible. */
#pragma once

#include "grid_state.h"

/* Checks what the launch asks for against its kernel and the engine. The grid is not in flight. */
CUresult grid_create(struct sg_engine *engine, const struct sg_launch *launch,
                     struct grid **ret_grid);
void grid_destroy(struct grid *grid);

/* Whether its blocks may run there. */
bool grid_allows_sm(const struct grid *grid, uint32_t sm);
