/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the collective instructions of a warp.
 */
#pragma once

#include "warp_state.h"

/* insn.mode of run_shuffle */
enum shuffle_mode {
    SHUFFLE_UP,
    SHUFFLE_DOWN,
    SHUFFLE_BUTTERFLY,
    SHUFFLE_INDEX,
};

/* insn.mode of run_vote */
enum vote_mode {
    VOTE_ALL,
    VOTE_ANY,
    VOTE_UNIFORM,
    VOTE_BALLOT,
};

void run_warp_barrier(struct warp *warp, const struct insn *insn);
void run_shuffle(struct warp *warp, const struct insn *insn);
void run_vote(struct warp *warp, const struct insn *insn);
void run_match_any_b32(struct warp *warp, const struct insn *insn);
void run_match_any_b64(struct warp *warp, const struct insn *insn);
void run_match_all_b32(struct warp *warp, const struct insn *insn);
void run_match_all_b64(struct warp *warp, const struct insn *insn);
void run_redux(struct warp *warp, const struct insn *insn);
void run_elect(struct warp *warp, const struct insn *insn);
void run_activemask(struct warp *warp, const struct insn *insn);
