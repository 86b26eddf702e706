/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one element and turns its channels into what an instruction gets.
 */
#pragma once

#include "tex.h"

/* Whether values are floats, so that they can be filtered. */
bool tex_reads_floats(const struct sg_texture *texture);
/* An element; a coordinate of -1 is the border. */
struct tex_texel tex_fetch(const struct sg_texture *texture, const struct sg_level *level,
                           int32_t x, int32_t y, int32_t z);
