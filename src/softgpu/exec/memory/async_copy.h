/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler of cp.async.
 */
#pragma once

#include "warp_state.h"

void run_copy_async(struct warp *warp, const struct insn *insn);
