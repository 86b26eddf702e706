/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of surface instructions. Values are in d, b, c, p of the insn, and coordinates in those
 * of the nop behind it. Of the insn, space is the shape, width the elements and mode the bytes of
 * one.
 *
 * The first coordinate counts bytes, the others count rows, slices or layers. A coordinate that is
 * not a multiple of the size faults with CUDA_ERROR_MISALIGNED_ADDRESS, and a number that is no
 * surface's with CUDA_ERROR_ILLEGAL_ADDRESS. An access outside faults with CUDA_ERROR_LAUNCH_FAILED
 * where insn.flags says so. A fault ends the kernel, and lanes before the faulting one may have
 * been served. The host thread that runs the warp's block calls them.
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
/* Adds or chooses (insn.b is the value, insn.imm the enum atomic_op). NULL: PTX has no such one. */
handler_fn surface_reduction(enum atomic_op op, enum ptx_type type);
