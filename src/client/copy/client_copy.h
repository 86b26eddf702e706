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
 * Copies on a stream. Returns when the program's pageable memory is done with; `sync` adds what
 * the synchronous calls of CUDA promise.
 */
CUresult copy_box(const struct box *box, enum side dst_side, enum side src_side,
                  struct stream *stream, bool sync);

/* What a description of CUDA's asks for. */
CUresult copy_box_of(const struct cuda_box *from, struct box *ret_box, enum side *ret_dst_side,
                     enum side *ret_src_side);

/* Where the sides of a box are that is not empty; refuses what CUDA would. */
CUresult copy_classify(const struct box *box, enum side dst_side, enum side src_side,
                       enum place *ret_dst, enum place *ret_src);

/* Says of a box that the device is to copy where the device finds its sides. */
void copy_on_device(struct box *box);

/* Between two places that the calling thread reaches. */
void copy_rows(const struct box *box);

/* The same for a box as CUDA describes it, on the stream with this handle. */
CUresult copy_described(const struct cuda_box *box, CUstream stream, bool sync);

/* One row. */
CUresult copy_bytes(uint64_t dst, enum side dst_side, uint64_t src, enum side src_side,
                    uint64_t size, struct stream *stream, bool sync);

/* Where in an array a side begins: bytes, rows, slices. */
struct copy_origin {
    uint64_t x, y, z;
};

static inline struct copy_origin copy_origin_of(uint64_t offset, uint64_t pitch, uint64_t height)
{
    return (struct copy_origin){offset % pitch, offset / pitch % height, offset / pitch / height};
}

/* Puts a box of which one side or both are in an array into a stream; no side is pageable. */
CUresult copy_array(const struct box *box, struct stream *stream);

/* The command of that, with this fence number. */
CUresult copy_send_array(const struct box *box, struct stream *stream, uint32_t seq);

/* Of copy_pageable.c: one side is the program's own memory, the other in the window. */
CUresult copy_upload(const struct box *box, struct stream *stream);
CUresult copy_download(const struct box *box, struct stream *stream);
