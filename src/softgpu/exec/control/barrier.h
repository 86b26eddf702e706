/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers of a block: bar and barrier.
 */
#pragma once

#include "block_state.h"

/* insn.mode */
enum barrier_mode {
    BARRIER_SYNC,
    BARRIER_ARRIVE,
    BARRIER_POPC,
    BARRIER_AND,
    BARRIER_OR,
};

/* Opens every barrier that waits for lanes which have exited. */
void barrier_recheck(struct block *block);

void run_barrier(struct warp *warp, const struct insn *insn);
/* The same in several warps of a block, all of whose lanes are active or dead. */
void team_barrier(struct warp *const *team, unsigned count, const struct insn *insn);
void run_barrier_result(struct warp *warp, const struct insn *insn);
