/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources that blocks take of an SM, and the number that fits. Nothing here locks: only the
 * SM's worker changes its usage.
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

/* Of one cluster of the grid: all its blocks go to one SM. */
struct share share_of_grid(const struct grid *grid);

/* The number of such shares that fit on an SM beside its usage. An empty SM takes at least one,
 * even one larger than the SM. */
unsigned share_count(const struct sg_engine *engine, const struct share *used,
                     const struct share *each);

void share_add(struct share *used, const struct share *more);
void share_take_away(struct share *used, const struct share *less);
