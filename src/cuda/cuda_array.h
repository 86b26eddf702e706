/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from the description of an array. The formats of video and of compressed blocks are
 * not carried.
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

/* Bytes of an element, or 0 for a format that is not carried. */
static inline uint32_t cuda_texel_size(CUarray_format format, uint32_t channels)
{
    if (channels != 1 && channels != 2 && channels != 4)
        return 0;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * channels;
    default:
        return 0;
    }
}

/* An array as boxes of bytes see it: `height` rows of `pitch` bytes in each of `depth` slices, be
 * they layers or not. */
struct cuda_array_bytes {
    uint64_t pitch, height, depth;
};

static inline struct cuda_array_bytes cuda_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *of)
{
    return (struct cuda_array_bytes){
        .pitch = of->Width * cuda_texel_size(of->Format, of->NumChannels),
        .height = of->Height ? of->Height : 1,
        .depth = of->Depth ? of->Depth : 1,
    };
}

/* Whether a box lies inside and consists of whole elements. */
static inline bool cuda_array_contains(const CUDA_ARRAY3D_DESCRIPTOR *array, uint64_t x, uint64_t y,
                                       uint64_t z, uint64_t width, uint64_t height, uint64_t depth)
{
    const struct cuda_array_bytes bytes = cuda_array_bytes(array);
    uint32_t texel = cuda_texel_size(array->Format, array->NumChannels);

    return x <= bytes.pitch && width <= bytes.pitch - x && y <= bytes.height &&
           height <= bytes.height - y && z <= bytes.depth && depth <= bytes.depth - z &&
           x % texel == 0 && width % texel == 0;
}
