/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of texture instructions. The nop behind one carries the coordinates in d, b, c, p; the
 * two behind that the level or the gradients.
 *
 * Active lanes alone are served; the results are 32 bits each. The host thread
 * that runs the warp's block calls them. No texture lives longer than the call: what a lane sees is
 * a copy, made under the lock of the address space.
 */
#pragma once

#include "texture.h"
#include "warp_state.h"

/* insn.mode */
enum tex_mode {
    TEX_BASE,
    TEX_LEVEL,
    TEX_GRADIENT,
    TEX_GATHER, /* insn.width: which channel */
};

/* insn.flags: coordinates are .s32 */
#define TEX_COUNTS_ELEMENTS 1

/* Queries of txq and suq, insn.mode of run_tex_query(); insn.flags: of a surface; b: of this level.
 */
enum tex_query {
    QUERY_WIDTH,
    QUERY_HEIGHT,
    QUERY_DEPTH,
    QUERY_LAYERS,
    QUERY_LEVELS,
    QUERY_SAMPLES,
    QUERY_NORMALIZED,
};

/* A copy of the object whose number a lane has in the register a. False when the warp has faulted
 * with CUDA_ERROR_ILLEGAL_ADDRESS. Then the number is of no object, or of one of the other kind. Or
 * the object is on linear memory that the kernel may not read any more. */
bool tex_object(struct warp *warp, const struct insn *insn, unsigned lane, bool is_surface,
                struct sg_texture *ret_texture);

void run_tex(struct warp *warp, const struct insn *insn);
/* Sets the predicate p. */
void run_tex_resident(struct warp *warp, const struct insn *insn);
/* A level that the object does not have is 0 wide, high and deep. */
void run_tex_query(struct warp *warp, const struct insn *insn);
