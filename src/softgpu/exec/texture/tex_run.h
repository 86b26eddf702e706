/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of texture instructions. The nop behind one carries the coordinates in d, b, c, p; the
 * two behind that the level or the gradients.
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

/* What txq and suq ask, insn.mode of run_tex_query(); insn.flags: of a surface; b: of this level.
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

/* The object whose number a lane has in the register a, or a fault and false. */
bool tex_object(struct warp *warp, const struct insn *insn, unsigned lane, bool is_surface,
                struct sg_texture *ret_texture);

void run_tex(struct warp *warp, const struct insn *insn);
/* Sets the predicate p. */
void run_tex_resident(struct warp *warp, const struct insn *insn);
void run_tex_query(struct warp *warp, const struct insn *insn);
