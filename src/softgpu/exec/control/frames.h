/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of a call's data in local memory: arguments, results, saved registers.
 */
#pragma once

#include "warp_state.h"

void run_copy_local(struct warp *warp, const struct insn *insn);
void run_save_registers(struct warp *warp, const struct insn *insn);
void run_restore_registers(struct warp *warp, const struct insn *insn);
