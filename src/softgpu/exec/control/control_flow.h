/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of branches and calls, and of what wraps another handler.
 */
#pragma once

#include "warp_state.h"

void run_guarded(struct warp *warp, const struct insn *insn);
void run_in_fp_environment(struct warp *warp, const struct insn *insn);
void run_branch(struct warp *warp, const struct insn *insn);
void run_branch_if(struct warp *warp, const struct insn *insn);
void run_branch_indexed(struct warp *warp, const struct insn *insn);
void run_call(struct warp *warp, const struct insn *insn);
void run_call_pointer(struct warp *warp, const struct insn *insn);
void run_ret(struct warp *warp, const struct insn *insn);
void run_exit(struct warp *warp, const struct insn *insn);
void run_trap(struct warp *warp, const struct insn *insn);
void run_nop(struct warp *warp, const struct insn *insn);
void run_fence(struct warp *warp, const struct insn *insn);
void run_nanosleep(struct warp *warp, const struct insn *insn);
