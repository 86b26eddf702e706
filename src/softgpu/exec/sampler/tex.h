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

/* The element of a coordinate for a point filter. */
int32_t tex_nearest(float at, uint32_t size, bool normalized, enum sg_address_mode mode);
/* The two elements around it for a linear filter. */
struct tex_axis tex_between(float at, uint32_t size, bool normalized, enum sg_address_mode mode);
/* An element's number brought into bounds, or -1. */
int32_t tex_wrap(int64_t index, uint32_t size, enum sg_address_mode mode);
/* 8 bits of fraction, rounded: 1 is possible. */
float tex_weight(float fraction);
/* The face that a direction meets (0 to 5), and the place on it, from 0 to 1. */
unsigned tex_face(const float direction[3], float ret_at[2]);

struct tex_texel {
    union {
        float f[4];
        uint32_t bits[4];
    };
};

/* Whether values are floats, so that they can be filtered. */
bool tex_reads_floats(const struct sg_texture *texture);
/* An element; a coordinate of -1 is the border. */
struct tex_texel tex_fetch(const struct sg_texture *texture, const struct sg_level *level,
                           int32_t x, int32_t y, int32_t z);

/* The mean around a point of a cube's face, whatever faces the elements are on. */
struct tex_texel tex_cube_mean(const struct sg_texture *texture, const struct sg_level *level,
                               uint32_t layer, const float at[2]);

struct tex_table {
    struct tex_slot *slots;
    uint32_t used, capacity;
    uint32_t free; /* the first free slot, chained; its end is `used` */
};

int tex_table_add(struct tex_table *table, const struct sg_texture *texture, uint64_t *ret_number);
int tex_table_remove(struct tex_table *table, uint64_t number);
const struct sg_texture *tex_table_get(const struct tex_table *table, uint64_t number);
void tex_table_fini(struct tex_table *table);
