/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The box that a copy by a tensor map moves, row by row. For each row it tells the place in the
 * tensor, how much is inside, and the place in shared memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cuda_tensor_map.h"

struct tensor_row {
    uint64_t address; /* of the first element that is inside the tensor */
    uint32_t first;   /* its index in the row */
    uint32_t count;   /* of the elements that are inside; 0: none is */
};

struct tensor_box {
    const struct cuda_tensor_map *map;
    int64_t start[CUDA_TENSOR_RANK_MAX];       /* elements */
    int64_t offsets[CUDA_TENSOR_RANK_MAX - 2]; /* im2col: of W, H, D */
    uint32_t element;                          /* bytes */
    uint32_t row_elements;
    uint64_t row_count;
    uint32_t counts[CUDA_TENSOR_RANK_MAX]; /* of a tiled box: elements along each dimension */
    int64_t at[CUDA_TENSOR_RANK_MAX];      /* of the row that comes next */
    uint32_t passed[CUDA_TENSOR_RANK_MAX]; /* of a tiled box: elements before it */
};

/* There are `rank` coordinates, and two offsets fewer; offsets are NULL except for loads by im2col.
 * The map must be valid and outlive the box. */
void tensor_box_begin(struct tensor_box *box, const struct cuda_tensor_map *map,
                      const int32_t *coordinates, const uint16_t *offsets);

/* The row that comes next; to be called row_count times. */
void tensor_box_next(struct tensor_box *box, struct tensor_row *ret_row);

static inline uint32_t tensor_box_row_bytes(const struct tensor_box *box)
{
    return box->row_elements * box->element;
}

/* Bytes of the whole box in shared memory. */
static inline uint64_t tensor_box_bytes(const struct tensor_box *box)
{
    return box->row_count * tensor_box_row_bytes(box);
}

/* The swizzled address of a chunk of 16 bytes. */
static inline uint64_t tensor_swizzled(uint64_t address, uint32_t swizzle)
{
    uint64_t chunks = (1u << swizzle) - 1; /* 32, 64, 128 bytes: 1, 3, 7 */

    return address ^ (address >> 7 & chunks) << 4;
}
