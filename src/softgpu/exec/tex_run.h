/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of texture instructions. The nop behind one carries the coordinates in d, b, c, p; the
 * two behind that the level or the gradients.
 */
#pragma once

#include "core.h"
#include "texture.h"

/* insn.mode */
enum tex_mode {
    TEX_BASE,
    TEX_LEVEL,
    TEX_GRADIENT,
    TEX_GATHER, /* insn.width: which channel */
};

/* insn.flags: coordinates are .s32 */
#define TEX_COUNTS_ELEMENTS 1

void run_tex(struct warp *warp, const struct insn *insn);
