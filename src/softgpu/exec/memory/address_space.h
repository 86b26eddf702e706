/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that turn an address of one state space into that of another, or ask about it.
 */
#pragma once

#include "warp_state.h"

void run_local_address(struct warp *warp, const struct insn *insn);
void run_param_address(struct warp *warp, const struct insn *insn);
void run_param_to_generic(struct warp *warp, const struct insn *insn);
void run_generic_to_param(struct warp *warp, const struct insn *insn);
void run_shared_to_generic(struct warp *warp, const struct insn *insn);
void run_generic_to_shared(struct warp *warp, const struct insn *insn);
void run_local_to_generic(struct warp *warp, const struct insn *insn);
void run_generic_to_local(struct warp *warp, const struct insn *insn);
void run_is_space(struct warp *warp, const struct insn *insn);
void run_map_address(struct warp *warp, const struct insn *insn);
void run_rank_of_address(struct warp *warp, const struct insn *insn);
