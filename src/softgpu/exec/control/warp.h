/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a warp runs: divergent paths of its lanes, one after the other.
 */
#pragma once

#include "warp_state.h"

/* same_grid: the registers are those of another block's warp of this index. */
void warp_start(struct warp *warp, uint32_t lanes, bool same_grid);
void warp_end(struct warp *warp);
/* Warps that run side by side; more would not fit the L1 cache. */
#define MAX_TEAM 8
/*
 * Runs 1 to MAX_TEAM warps of one block, in turns or side by side. It returns when each has exited,
 * blocks, faults or has used up its budget of backward jumps. True where a budget was used up.
 */
bool warps_run(struct warp *const *warps, unsigned count, int32_t budget);
/* Runs a warp that can run by at most this many instructions of one path. */
void warp_step(struct warp *warp, unsigned steps);
bool warp_can_run(const struct warp *warp);
void warp_set_active(struct warp *warp, uint32_t mask);
void warp_add_path(struct warp *warp, const struct insn *pc, uint32_t mask);
/* The same for lanes that waited and go on; the warp may be running meanwhile, in a team. */
void warp_resume(struct warp *warp, const struct insn *pc, uint32_t mask);
void warp_leave(struct warp *warp, enum warp_event event);
/* Jumps for some of the active lanes; the others go on. */
void warp_branch(struct warp *warp, const struct insn *target, uint32_t taken);
void warp_exit_lanes(struct warp *warp, uint32_t mask);
/* True when every lane named is here; else the path waits at this instruction (it will run again).
 */
bool warp_converged(struct warp *warp, const struct insn *insn, uint32_t members);
