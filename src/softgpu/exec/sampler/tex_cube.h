/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cubes: directions to faces, and filtering across their edges. An element beyond an edge is the
 * one of another face that its direction meets. Beyond a corner there is none, and the three around
 * the corner stand for it.
 */
#pragma once

#include "tex.h"

/* The face that a direction meets (0 to 5), and the place on it, from 0 to 1. */
unsigned tex_face(const float direction[3], float ret_at[2]);

/* The mean around a point of a cube's face, whatever faces the elements are on. */
struct tex_texel tex_cube_mean(const struct sg_texture *texture, const struct sg_level *level,
                               uint32_t layer, const float at[2]);
