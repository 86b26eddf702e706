/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of atomic operations on 128 bits: d is in two registers, or none; b and c in two each.
 */
#pragma once

#include "warp_state.h"

void run_exchange_b128(struct warp *warp, const struct insn *insn);
void run_compare_and_swap_b128(struct warp *warp, const struct insn *insn);
