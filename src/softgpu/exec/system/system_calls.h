/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of calls into the system: vprintf, __assertfail, malloc, free,
 * cudaGraphSetConditional. Arguments are at offsets in the caller's frame.
 */
#pragma once

#include "warp_state.h"

void run_printf(struct warp *warp, const struct insn *insn);
void run_assert_fail(struct warp *warp, const struct insn *insn);
void run_malloc(struct warp *warp, const struct insn *insn);
void run_free(struct warp *warp, const struct insn *insn);
void run_set_conditional(struct warp *warp, const struct insn *insn);
