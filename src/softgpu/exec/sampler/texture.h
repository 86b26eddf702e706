/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects: described by the driver, read by the core.
 *
 * An object names memory in levels of rows, says how an element is stored, and how coordinates that
 * fall between elements or outside are treated. Sampling is pure: it needs no warp.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SG_MAX_LEVELS 18

enum sg_channel {
    SG_CHANNEL_UNSIGNED,
    SG_CHANNEL_SIGNED,
    SG_CHANNEL_FLOAT, /* of 2 bytes: half */
};

struct sg_format {
    enum sg_channel kind;
    uint8_t channels; /* 1, 2 or 4 */
    uint8_t size;     /* bytes of a channel */
};

static inline uint32_t sg_texel_size(const struct sg_format *format)
{
    return (uint32_t)format->channels * format->size;
}

struct sg_level {
    uint64_t address;
    uint64_t pitch; /* from row to row */
    uint64_t slice; /* from slice to slice, or from layer to layer */
    uint32_t width, height, depth;
};

enum sg_address_mode {
    SG_WRAP,
    SG_CLAMP,
    SG_MIRROR,
    SG_BORDER,
};

struct sg_texture {
    struct sg_format format;
    struct sg_level levels[SG_MAX_LEVELS];
    uint32_t level_count;
    uint32_t layers;       /* or faces; 1 where there are none */
    uint64_t checked_size; /* not 0: memory that kernels must be allowed to read at levels[0] */
    uint32_t beyond;       /* elements of a row that follow, and that kernels must not read */
    bool is_surface;
    bool is_linear;  /* one row: what lies outside reads as zero */
    bool normalized; /* coordinates from 0 to 1 */
    bool as_float;   /* integers of 8 and 16 bits are read as fractions of the largest */
    bool srgb;
    bool filter_linear;
    bool mip_linear;
    bool seamless;      /* a cube is filtered across the edges of its faces */
    uint8_t address[3]; /* enum sg_address_mode */
    float bias, least_level, greatest_level;
    float border[4];
};

/* The request of an instruction. */
enum sg_shape {
    SG_1D,
    SG_2D,
    SG_3D,
    SG_1D_LAYERED,
    SG_2D_LAYERED,
    SG_CUBE,
    SG_CUBE_LAYERED,
};

struct sg_sample {
    enum sg_shape shape;
    uint32_t layer;
    float at[3];
    float lod; /* 0 without .level and .grad */
};

/* Bits of four channels: of floats, or of integers where the object is read so. */
void sg_texture_sample(const struct sg_texture *texture, const struct sg_sample *sample,
                       uint32_t ret_bits[4]);
/* The same for coordinates that are integers: they count elements and nothing is filtered. */
void sg_texture_fetch(const struct sg_texture *texture, const struct sg_sample *sample,
                      const int32_t at[3], uint32_t ret_bits[4]);
/* One channel of the four elements that a linear filter would look at (tld4). */
void sg_texture_gather(const struct sg_texture *texture, const struct sg_sample *sample,
                       unsigned channel, uint32_t ret_bits[4]);
/* The level of detail of a footprint, as .grad gives it. */
float sg_texture_lod(const struct sg_texture *texture, enum sg_shape shape, const float dx[3],
                     const float dy[3]);
