/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between any two places. */
#pragma once

#include "client_memory.h"
#include "client_stream.h"
#include "copy_plan.h"
#include "cuda_box.h"

/* Where the program says that a side is. SIDE_ANY: the address decides. */
enum side {
    SIDE_ANY,
    SIDE_HOST,
    SIDE_DEVICE,
};

/*
 * Copies on a stream. Returns when the program's pageable memory is not used any more; `sync` adds
 * what the synchronous calls of CUDA promise. CUDA_ERROR_INVALID_VALUE for what copy_classify()
 * refuses.
 */
CUresult copy_box(const struct box *box, enum side dst_side, enum side src_side,
                  struct stream *stream, bool sync);

/* From CUDA's description to a box. CUDA_ERROR_INVALID_VALUE, or CUDA_ERROR_INVALID_HANDLE for an
 * array that is not there. */
CUresult copy_box_of(const struct cuda_box *from, struct box *ret_box, enum side *ret_dst_side,
                     enum side *ret_src_side);

/* Where the sides of a box are, which is not empty. CUDA_ERROR_INVALID_VALUE when a side is
 * nowhere, or is not where the program says that it is. */
CUresult copy_classify(const struct box *box, enum side dst_side, enum side src_side,
                       enum place *ret_dst, enum place *ret_src);

/* Replaces the addresses of a box by those that the device uses. */
void copy_on_device(struct box *box);

/* Copies between two places that the calling thread reaches, which may overlap within a row. */
void copy_rows(const struct box *box);

/* copy_box() for CUDA's description of a box, on the stream with this handle. */
CUresult copy_described(const struct cuda_box *box, CUstream stream, bool sync);

/* copy_box() for one row. */
CUresult copy_bytes(uint64_t dst, enum side dst_side, uint64_t src, enum side src_side,
                    uint64_t size, struct stream *stream, bool sync);

/* Where in an array a side begins: in bytes, rows and slices. */
struct copy_origin {
    uint64_t x, y, z;
};

static inline struct copy_origin copy_origin_of(uint64_t offset, uint64_t pitch, uint64_t height)
{
    return (struct copy_origin){offset % pitch, offset / pitch % height, offset / pitch / height};
}
