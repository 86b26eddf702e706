/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from the description of an array. The formats of video and of compressed blocks are
 * not carried. The functions are pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

#define CUDA_ARRAY_FLAGS_CARRIED                                               \
    (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | \
     CUDA_ARRAY3D_TEXTURE_GATHER)

/* Beyond every device's bounds; with it no product of the three overflows. */
#define CUDA_ARRAY_EXTENT_MAX (1u << 18)
#define CUDA_ARRAY_LEVELS_MAX 19

/* Bytes of an element, or 0 for a format that is not carried. */
uint32_t cuda_texel_size(CUarray_format format, uint32_t channels);

/* Whether the extents are no more than CUDA_ARRAY_EXTENT_MAX, and one of them is not 0. */
bool cuda_array_has_extent(const CUDA_ARRAY3D_DESCRIPTOR *array);

/* An array as boxes of bytes see it: `height` rows of `pitch` bytes in each of `depth` slices, be
 * they layers or not. */
struct cuda_array_bytes {
    uint64_t pitch, height, depth;
};

struct cuda_array_bytes cuda_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array);

/* Whether a box lies inside and consists of whole elements. */
bool cuda_array_contains(const CUDA_ARRAY3D_DESCRIPTOR *array, uint64_t x, uint64_t y, uint64_t z,
                         uint64_t width, uint64_t height, uint64_t depth);

/* The number of mipmap levels down to a single element, and the description of each level. */
unsigned cuda_array_most_levels(const CUDA_ARRAY3D_DESCRIPTOR *array);
CUDA_ARRAY3D_DESCRIPTOR cuda_array_level(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned level);

/* The elements that a view shows; those of the array itself for CU_RES_VIEW_FORMAT_NONE. False for
 * formats that are not carried. */
bool cuda_view_format(const CUDA_RESOURCE_VIEW_DESC *view, const CUDA_ARRAY3D_DESCRIPTOR *array,
                      CUarray_format *ret_format, unsigned *ret_channels);

/* Whether a view shows what is there of an array with so many levels. */
CUresult cuda_array_check_view(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels,
                               const CUDA_RESOURCE_VIEW_DESC *view);

/* How a texture object on an array is described on the wire: the view is there or not. */
struct cuda_texture_words {
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
};
