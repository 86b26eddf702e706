/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a copy into chunks. */
#include "copy_plan.h"

/* A thread copies at some 15 GB/s and the GPU at 54. So the smallest chunk is worth 35 us of the
 * one and 10 us of the other; a command costs about 4 us. Measured on an H200: with 256 KiB one
 * client gets 17 GB/s, but eight together 31 where NVIDIA's MPS has 47. */
#define CHUNK_MIN (512u << 10)
#define CHUNKS_WANTED 16u
#define LINE 64u

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct box box_flatten(const struct box *box)
{
    struct box flat = *box;

    if (box_has_array(box))
        return flat; /* a chunk has to be a box of the array */
    if (flat.height > 1 && flat.dst_pitch == flat.width && flat.src_pitch == flat.width &&
        (flat.depth == 1 || (flat.dst_height == flat.height && flat.src_height == flat.height))) {
        flat.width *= flat.height * flat.depth;
        flat.height = flat.depth = 1;
        flat.dst_pitch = flat.src_pitch = flat.width;
    }
    return flat;
}

/* All chunks have the same size, because a last one of a few bytes would cost as much as the
 * others. */
uint64_t copy_chunk_size(uint64_t total, uint64_t slot_size, bool contended)
{
    uint64_t size = total / CHUNKS_WANTED, chunks;

    if (size < CHUNK_MIN)
        size = contended ? slot_size : CHUNK_MIN;
    if (size >= slot_size)
        return slot_size;
    chunks = total / size;
    if (chunks > 1)
        size = (total + chunks - 1) / chunks;
    else
        size = total;
    return smaller((size + LINE - 1) & ~(uint64_t)(LINE - 1), slot_size);
}

struct walk walk_begin(const struct box *box, bool upload, uint64_t slot_size, bool contended)
{
    uint64_t total = box->width * box->height * box->depth;

    return (struct walk){
        .box = *box,
        .upload = upload,
        .contended = contended,
        .chunk_size = copy_chunk_size(total, slot_size, contended),
    };
}

static void place_chunk(const struct walk *walk, struct chunk *chunk)
{
    const struct box *box = &walk->box;
    uint64_t dst = box->dst + (walk->z * box->dst_height + walk->y) * box->dst_pitch + walk->x;
    uint64_t src = box->src + (walk->z * box->src_height + walk->y) * box->src_pitch + walk->x;

    chunk->window = walk->upload ? dst : src;
    chunk->window_pitch = walk->upload ? box->dst_pitch : box->src_pitch;
    chunk->host = walk->upload ? src : dst;
    chunk->host_pitch = walk->upload ? box->src_pitch : box->dst_pitch;
}

bool walk_next(struct walk *walk, struct chunk *ret_chunk)
{
    const struct box *box = &walk->box;
    uint64_t most = walk->chunk_size;

    if (walk->z == box->depth)
        return false;
    place_chunk(walk, ret_chunk);
    ret_chunk->width = smaller(box->width - walk->x, most);
    ret_chunk->rows = box->width <= most ? smaller(most / box->width, box->height - walk->y) : 1;
    walk->x += ret_chunk->width;
    if (walk->x < box->width)
        return true;
    walk->x = 0;
    walk->y += ret_chunk->rows;
    if (walk->y == box->height) {
        walk->y = 0;
        walk->z++;
    }
    return true;
}
