/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory on the stack whose size is known only when the kernel runs: alloca, stacksave,
 * stackrestore.
 */
#pragma once

#include "warp_state.h"

/* How far this lane's frames may grow, in bytes. */
uint32_t stack_limit(struct warp *warp, unsigned lane);

void run_alloca(struct warp *warp, const struct insn *insn);
void run_stack_save(struct warp *warp, const struct insn *insn);
void run_stack_restore(struct warp *warp, const struct insn *insn);
void run_stack_mark(struct warp *warp, const struct insn *insn);
void run_stack_release(struct warp *warp, const struct insn *insn);
