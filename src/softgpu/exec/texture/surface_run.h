/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of surface instructions. Values are in d, b, c, p of the insn, coordinates in those of
 * the nop behind it; insn.space is the shape, insn.width the elements and insn.mode the bytes of
 * one.
 */
#pragma once

#include "atomics.h"

/* insn.flags: what becomes of an access outside */
enum surface_bounds {
    SURFACE_TRAP,
    SURFACE_CLAMP,
    SURFACE_ZERO, /* reads zeroes; writes are dropped */
};

void run_surface_load(struct warp *warp, const struct insn *insn);
void run_surface_store(struct warp *warp, const struct insn *insn);
/* Of these types and operations (insn.b is the value, insn.imm the enum atomic_op): */
handler_fn surface_reduction(enum atomic_op op, enum ptx_type type);
