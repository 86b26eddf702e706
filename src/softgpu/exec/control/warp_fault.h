/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault of a kernel: it ends the grid.
 */
#pragma once

#include "cuda_result.h"
#include "warp_state.h"

void warp_fault(struct warp *warp, const struct insn *insn, unsigned lane, CUresult result,
                const char *what, ...) __attribute__((format(printf, 5, 6)));
