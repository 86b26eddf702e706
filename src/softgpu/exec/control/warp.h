/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a warp runs: divergent paths of its lanes, one after the other.
 */
#pragma once

#include "warp_state.h"

/* same_grid: the registers are those of another block's warp of this index. */
void warp_start(struct warp *warp, uint32_t lanes, bool same_grid);
void warp_end(struct warp *warp);
/* Runs until the warp exits, blocks, faults or has used up its budget. */
void warp_run(struct warp *warp, int32_t budget);
bool warp_can_run(const struct warp *warp);
void warp_set_active(struct warp *warp, uint32_t mask);
void warp_add_path(struct warp *warp, const struct insn *pc, uint32_t mask);
void warp_leave(struct warp *warp, enum warp_event event);
/* Jumps for some of the active lanes; the others go on. */
void warp_branch(struct warp *warp, const struct insn *target, uint32_t taken);
void warp_exit_lanes(struct warp *warp, uint32_t mask);
/* True when every lane named is here; else the path waits at this instruction (it will run again).
 */
bool warp_converged(struct warp *warp, const struct insn *insn, uint32_t members);
