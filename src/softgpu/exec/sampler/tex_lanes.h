/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a common kind of texture, for a whole warp at once.
 */
#pragma once

#include "lanes.h"
#include "tex.h"

/*
 * Four channels for every lane, active or not; layer: NULL where the shape has none. False where
 * the texture, the shape or a coordinate is not of the common kind: then lanes are served one by
 * one.
 */
typedef bool (*tex_sample_lanes_fn)(const struct sg_texture *texture, enum sg_shape shape,
                                    const uint32_t *layer, const float *const at[3],
                                    uint32_t ret_bits[4][LANES]);

bool tex_sample_lanes_base(const struct sg_texture *texture, enum sg_shape shape,
                           const uint32_t *layer, const float *const at[3],
                           uint32_t ret_bits[4][LANES]);
bool tex_sample_lanes_v3(const struct sg_texture *texture, enum sg_shape shape,
                         const uint32_t *layer, const float *const at[3],
                         uint32_t ret_bits[4][LANES]);
bool tex_sample_lanes_v4(const struct sg_texture *texture, enum sg_shape shape,
                         const uint32_t *layer, const float *const at[3],
                         uint32_t ret_bits[4][LANES]);
/* The best for this CPU. */
tex_sample_lanes_fn tex_sample_lanes(void);
