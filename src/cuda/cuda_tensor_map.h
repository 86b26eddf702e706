/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls cuTensorMapEncode* are given, in one structure. */
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

/* Copies what the rank says there is from the arrays of a call; NULL stands for an array that the
 * call does not have. False when the rank is 0 or more than 5, or strides are missing. */
bool cuda_tensor_map_read(struct cuda_tensor_map *map, const cuuint64_t *dims,
                          const cuuint64_t *strides, const cuuint32_t *box,
                          const cuuint32_t *element_strides, const int *lower, const int *upper);

/* Whether NVIDIA's documentation allows these arguments. */
bool cuda_tensor_map_is_valid(const struct cuda_tensor_map *map);
