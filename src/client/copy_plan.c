/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a copy into pieces. */
#include "copy_plan.h"

/* A thread copies at some 15 GB/s and the GPU at 54, so the smallest piece is worth 35 us of the
 * one and 10 us of the other; a command costs about 4 us. Measured on an H200: with 256 KiB one
 * client gets 17 GB/s, but eight together 31 where NVIDIA's MPS has 47. */
#define PIECE_MIN (512u << 10)
#define PIECES_WANTED 16u
#define LINE 64u

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct box box_flatten(const struct box *box)
{
    struct box flat = *box;

    if (box_has_array(box))
        return flat; /* a piece has to be a box of the array */
    if (flat.height > 1 && flat.dst_pitch == flat.width && flat.src_pitch == flat.width &&
        (flat.depth == 1 || (flat.dst_height == flat.height && flat.src_height == flat.height))) {
        flat.width *= flat.height * flat.depth;
        flat.height = flat.depth = 1;
        flat.dst_pitch = flat.src_pitch = flat.width;
    }
    return flat;
}

/* The pieces come out equal, lest a last one of a few bytes costs as much as the others. */
uint64_t copy_piece_size(uint64_t total, uint64_t slot_size, bool crowded)
{
    uint64_t size = total / PIECES_WANTED, pieces;

    if (size < PIECE_MIN)
        size = crowded ? slot_size : PIECE_MIN;
    if (size >= slot_size)
        return slot_size;
    pieces = total / size;
    if (pieces > 1)
        size = (total + pieces - 1) / pieces;
    else
        size = total;
    return smaller((size + LINE - 1) & ~(uint64_t)(LINE - 1), slot_size);
}

struct walk walk_begin(const struct box *box, bool upload, uint64_t slot_size, bool crowded)
{
    uint64_t total = box->width * box->height * box->depth;

    return (struct walk){
        .box = *box,
        .upload = upload,
        .crowded = crowded,
        .piece_size = copy_piece_size(total, slot_size, crowded),
    };
}

static void place_piece(const struct walk *walk, struct piece *piece)
{
    const struct box *box = &walk->box;
    uint64_t dst = box->dst + (walk->z * box->dst_height + walk->y) * box->dst_pitch + walk->x;
    uint64_t src = box->src + (walk->z * box->src_height + walk->y) * box->src_pitch + walk->x;

    piece->window = walk->upload ? dst : src;
    piece->window_pitch = walk->upload ? box->dst_pitch : box->src_pitch;
    piece->host = walk->upload ? src : dst;
    piece->host_pitch = walk->upload ? box->src_pitch : box->dst_pitch;
}

bool walk_next(struct walk *walk, struct piece *ret_piece)
{
    const struct box *box = &walk->box;
    uint64_t most = walk->piece_size;

    if (walk->z == box->depth)
        return false;
    place_piece(walk, ret_piece);
    ret_piece->width = smaller(box->width - walk->x, most);
    ret_piece->rows = box->width <= most ? smaller(most / box->width, box->height - walk->y) : 1;
    walk->x += ret_piece->width;
    if (walk->x < box->width)
        return true;
    walk->x = 0;
    walk->y += ret_piece->rows;
    if (walk->y == box->height) {
        walk->y = 0;
        walk->z++;
    }
    return true;
}
