/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the texture unit: coordinates to elements (tex_address.c), elements to
 * values (tex_fetch.c), objects by number (tex_table.c). Values become samples in tex_filter.c, and
 * in tex_cube.c for cubes.
 */
#pragma once

#include "texture.h"

/* Beyond any texture, and still an int32_t. */
#define TEX_FAR 1e9f

/* Two neighbors along one dimension, and how much the second counts, in 1/256. */
struct tex_axis {
    int32_t first, second; /* -1: outside, where the border is */
    float weight;
};

struct tex_texel {
    union {
        float f[4];
        uint32_t bits[4];
    };
};

struct tex_table {
    struct tex_slot *slots;
    uint32_t used, capacity;
    uint32_t free; /* the first free slot, chained; its end is `used` */
};
