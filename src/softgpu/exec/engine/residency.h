/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks take of an SM, and how many fit. Nothing here locks: what an SM has in use is its
 * worker's to change.
 */
#pragma once

#include "grid_state.h"
#include "sg_engine.h"

#define MAX_RESIDENT 32
#define MAX_SHARED_PER_BLOCK (227u << 10) /* bytes */

/* Of an SM's resources. */
struct share {
    unsigned blocks;
    unsigned threads;
    unsigned shared; /* bytes */
    unsigned registers;
};

/* engine.c: what an SM has. */
const struct sg_engine_config *engine_config(const struct sg_engine *engine);

/* Of one cluster of the grid: all its blocks go to one SM. */
struct share share_of_grid(const struct grid *grid);

/* How many such shares fit on an SM beside what is used: on an empty one at least one, which is
 * larger than the SM if it must be. */
unsigned share_count(const struct sg_engine *engine, const struct share *used,
                     const struct share *each);

void share_add(struct share *used, const struct share *more);
void share_take_away(struct share *used, const struct share *less);
