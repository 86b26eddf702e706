/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of everything that touches memory.
 */
#pragma once

#include "core.h"

/* Of a budget counted in backward jumps. */
#define SYNCHRONISING_COST 32

void warp_synchronises(struct warp *warp);

#define DECLARE(name) void run_##name(struct warp *warp, const struct insn *insn);
DECLARE(load_u8)
DECLARE(load_s8)
DECLARE(load_u16)
DECLARE(load_s16)
DECLARE(load_b32)
DECLARE(load_b64)
DECLARE(store_b8)
DECLARE(store_b16)
DECLARE(store_b32)
DECLARE(store_b64)
DECLARE(load_param_u8)
DECLARE(load_param_s8)
DECLARE(load_param_u16)
DECLARE(load_param_s16)
DECLARE(load_param_b32)
DECLARE(load_param_b64)
DECLARE(copy_local)
DECLARE(copy_async)
DECLARE(save_registers)
DECLARE(restore_registers)
#undef DECLARE
