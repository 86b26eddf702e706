/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a box of pageable memory is cut into chunks that fit a staging slot. A chunk is part of a
 * row, or as many whole rows as fit. Pure: addresses are only counted with.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A box of bytes: `depth` slices of `height` rows of `width` bytes. A plain copy is one row. */
struct box {
    uint64_t dst, src; /* of the first byte */
    uint64_t dst_pitch, dst_height, src_pitch, src_height;
    uint64_t width, height, depth;
    uint64_t dst_array, src_array; /* handle, or 0: the address counts bytes of packed rows in it */
};

/* `rows` rows of `width` bytes; packed in the slot, pitched in the window and in the program. */
struct chunk {
    uint64_t window, window_pitch;
    uint64_t host, host_pitch;
    uint64_t width, rows;
};

/* Walks a box chunk by chunk. */
struct walk {
    struct box box;
    bool upload;         /* the program's memory is the source */
    bool contended;      /* an upload, and others copy as well */
    uint64_t chunk_size; /* no chunk has more bytes */
    uint64_t x, y, z;
};

static inline bool box_has_array(const struct box *box)
{
    return box->dst_array || box->src_array;
}

static inline bool box_is_empty(const struct box *box)
{
    return box->width == 0 || box->height == 0 || box->depth == 0;
}

/* One side lies somewhere else, and there without gaps. */
static inline void box_set_src(struct box *box, uint64_t address)
{
    box->src = address;
    box->src_array = 0;
    box->src_pitch = box->width;
    box->src_height = box->height;
}

static inline void box_set_dst(struct box *box, uint64_t address)
{
    box->dst = address;
    box->dst_array = 0;
    box->dst_pitch = box->width;
    box->dst_height = box->height;
}

/* Rows that follow each other on both sides are one. */
struct box box_flatten(const struct box *box);

/* Chunks are small enough for the thread and the GPU to work side by side. They are large enough to
 * make the cost of a command small. Where it is contended, they are as large as they can be. */
uint64_t copy_chunk_size(uint64_t total, uint64_t slot_size, bool contended);

/* `box` is not empty. */
struct walk walk_begin(const struct box *box, bool upload, uint64_t slot_size, bool contended);

/* False when the whole box has been handed out. */
bool walk_next(struct walk *walk, struct chunk *ret_chunk);
