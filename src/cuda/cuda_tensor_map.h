/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the calls cuTensorMapEncode* in one structure, and their checks. */
#pragma once

#include <stdbool.h>

#include "cuda_structs.h"
#include "cuda_texture.h"

#define CUDA_TENSOR_RANK_MAX 5u

enum cuda_tensor_map_kind {
    TENSOR_MAP_TILED,
    TENSOR_MAP_IM2COL,
    TENSOR_MAP_IM2COL_WIDE,
    TENSOR_MAP_REPLACE, /* cuTensorMapReplaceAddress */
};

/* Entries behind the rank are 0. The corners have rank - 2 entries. */
struct cuda_tensor_map {
    enum cuda_tensor_map_kind kind;
    uint32_t type, rank, interleave, swizzle, promotion, fill, mode;
    uint64_t address;
    uint64_t dims[CUDA_TENSOR_RANK_MAX];
    uint64_t strides[CUDA_TENSOR_RANK_MAX - 1]; /* bytes */
    uint32_t box[CUDA_TENSOR_RANK_MAX];
    uint32_t element_strides[CUDA_TENSOR_RANK_MAX];
    int32_t lower[CUDA_TENSOR_RANK_MAX - 2], upper[CUDA_TENSOR_RANK_MAX - 2];
    uint32_t channels, pixels;
};

/*
 * What the calls of these names were given. False when the rank is 0 or more than 5, or strides are
 * missing; nothing else has been checked then.
 */
bool cuda_tensor_map_tiled(CUtensorMapDataType type, cuuint32_t rank, const void *address,
                           const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                           const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                           CUtensorMapFloatOOBfill fill, struct cuda_tensor_map *ret_map);
bool cuda_tensor_map_im2col(CUtensorMapDataType type, cuuint32_t rank, const void *address,
                            const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
                            const int *upper, cuuint32_t channels, cuuint32_t pixels,
                            const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                            CUtensorMapFloatOOBfill fill, struct cuda_tensor_map *ret_map);

/* Bytes of an element; 0 for a type that there is not, and for those that pack sixteen elements. */
uint32_t cuda_tensor_element_size(uint32_t type);

/* Bytes within which a swizzle exchanges chunks; 0 for none. */
uint32_t cuda_tensor_swizzle_span(uint32_t swizzle);

/* Whether NVIDIA's documentation allows these arguments. */
bool cuda_tensor_map_is_valid(const struct cuda_tensor_map *map);
