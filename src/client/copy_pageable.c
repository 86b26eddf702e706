/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from and to memory that the GPU does not reach. A few bytes ride in the command itself.
 * More goes through the staging slots in pieces: while the GPU moves one piece, the thread copies
 * the next. A piece is part of a row, or as many whole rows as fit.
 */
#include <string.h>

#include "client_copy.h"
#include "staging.h"
#include "wire_calls.h"

#define INLINE_MAX 16384u
#define SLOT_SIZE GPU_REGION_STAGING_SLOT_SIZE
#define DOWNLOADS_IN_FLIGHT 6u

/* `rows` rows of `width` bytes; packed in the slot, pitched in the window and in the program. */
struct piece {
    uint64_t window, window_pitch;
    uint64_t host, host_pitch;
    uint64_t width, rows;
};

/* Walks a box piece by piece. */
struct walk {
    const struct box *box;
    bool upload;
    uint64_t x, y, z;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void place_piece(const struct walk *walk, struct piece *piece)
{
    const struct box *box = walk->box;
    uint64_t dst = box->dst + (walk->z * box->dst_height + walk->y) * box->dst_pitch + walk->x;
    uint64_t src = box->src + (walk->z * box->src_height + walk->y) * box->src_pitch + walk->x;

    piece->window = walk->upload ? dst : src;
    piece->window_pitch = walk->upload ? box->dst_pitch : box->src_pitch;
    piece->host = walk->upload ? src : dst;
    piece->host_pitch = walk->upload ? box->src_pitch : box->dst_pitch;
}

static bool next_piece(struct walk *walk, struct piece *ret_piece)
{
    const struct box *box = walk->box;

    if (walk->z == box->depth)
        return false;
    place_piece(walk, ret_piece);
    ret_piece->width = smaller(box->width - walk->x, SLOT_SIZE);
    ret_piece->rows =
        box->width <= SLOT_SIZE ? smaller(SLOT_SIZE / box->width, box->height - walk->y) : 1;
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

/* Rows that follow each other on both sides are one. */
static struct box flatten(const struct box *box)
{
    struct box flat = *box;

    if (flat.height > 1 && flat.dst_pitch == flat.width && flat.src_pitch == flat.width &&
        (flat.depth == 1 || (flat.dst_height == flat.height && flat.src_height == flat.height))) {
        flat.width *= flat.height * flat.depth;
        flat.height = flat.depth = 1;
        flat.dst_pitch = flat.src_pitch = flat.width;
    }
    return flat;
}

/* ---- both directions: the command between slot and window ---- */

static CUresult send_piece(const struct piece *piece, uint64_t slot, bool upload,
                           struct stream *stream, struct fence *ret_fence)
{
    struct wire_cuMemcpy3DAsync_v2 in = {
        .dst = upload ? piece->window : slot,
        .src = upload ? slot : piece->window,
        .dst_pitch = upload ? piece->window_pitch : piece->width,
        .src_pitch = upload ? piece->width : piece->window_pitch,
        .dst_height = piece->rows,
        .src_height = piece->rows,
        .width = piece->width,
        .height = piece->rows,
        .depth = 1,
        .hStream = stream->handle,
    };
    struct wire_cuMemcpyAsync row = {
        .dst = in.dst, .src = in.src, .ByteCount = in.width, .hStream = in.hStream};
    CUresult result;

    in.seq = row.seq = stream_begin_fenced(stream);
    if (piece->rows == 1)
        result = wire_cuMemcpyAsync(&client->channel, &row);
    else
        result = wire_cuMemcpy3DAsync_v2(&client->channel, &in);
    *ret_fence = stream_fence_at(stream, in.seq);
    stream_end();
    return result;
}

/* ---- up ---- */

static CUresult upload_inline(const struct box *box, struct stream *stream)
{
    struct wire_cuMemcpyHtoDAsync_v2 in = {
        .dstDevice = box->dst,
        .hStream = stream->handle,
        .data = (const void *)(uintptr_t)box->src,
        .data_size = (uint32_t)box->width,
    };
    CUresult result;

    stream_begin(stream);
    result = wire_cuMemcpyHtoDAsync_v2(&client->channel, &in);
    stream_end();
    return result;
}

static void pack(const struct piece *piece, uint64_t slot)
{
    for (uint64_t row = 0; row < piece->rows; row++)
        memcpy((void *)(uintptr_t)(slot + row * piece->width),
               (const void *)(uintptr_t)(piece->host + row * piece->host_pitch), piece->width);
}

static CUresult upload_piece(const struct piece *piece, struct stream *stream)
{
    struct fence fence;
    unsigned slot;
    CUresult result = staging_take(&slot);

    if (result != CUDA_SUCCESS)
        return result;
    pack(piece, staging_address(slot));
    result = send_piece(piece, staging_address(slot), true, stream, &fence);
    staging_give(slot, result == CUDA_SUCCESS ? &fence : NULL);
    return result;
}

CUresult copy_upload(const struct box *box, struct stream *stream)
{
    struct box flat = flatten(box);
    struct walk walk = {.box = &flat, .upload = true};
    struct piece piece;
    CUresult result = CUDA_SUCCESS;

    if (flat.height * flat.depth == 1 && flat.width <= INLINE_MAX)
        return upload_inline(&flat, stream);
    while (result == CUDA_SUCCESS && next_piece(&walk, &piece))
        result = upload_piece(&piece, stream);
    return result;
}

/* ---- down ---- */

struct download {
    struct piece piece;
    struct fence fence;
    unsigned slot;
};

static void unpack(const struct piece *piece, uint64_t slot)
{
    for (uint64_t row = 0; row < piece->rows; row++)
        memcpy((void *)(uintptr_t)(piece->host + row * piece->host_pitch),
               (const void *)(uintptr_t)(slot + row * piece->width), piece->width);
}

static CUresult finish_download(const struct download *download, struct stream *stream)
{
    CUresult result = fence_wait(download->fence, stream->handle, FENCE_SPIN);

    if (result == CUDA_SUCCESS)
        unpack(&download->piece, staging_address(download->slot));
    staging_give(download->slot, result == CUDA_SUCCESS ? NULL : &download->fence);
    return result;
}

static CUresult start_download(struct download *download, struct stream *stream)
{
    CUresult result = send_piece(&download->piece, staging_address(download->slot), false, stream,
                                 &download->fence);

    if (result != CUDA_SUCCESS)
        staging_give(download->slot, NULL);
    return result;
}

/* Whoever holds a slot already must not wait for another: two such threads could wait for each
 * other. It finishes one of its own instead. */
CUresult copy_download(const struct box *box, struct stream *stream)
{
    struct box flat = flatten(box);
    struct walk walk = {.box = &flat, .upload = false};
    struct download ring[DOWNLOADS_IN_FLIGHT];
    unsigned first = 0, count = 0;
    CUresult result = CUDA_SUCCESS;
    struct piece piece;
    bool more = next_piece(&walk, &piece);

    while (result == CUDA_SUCCESS && (more || count > 0)) {
        struct download *next = &ring[(first + count) % DOWNLOADS_IN_FLIGHT];
        bool have = false;

        if (more && count < DOWNLOADS_IN_FLIGHT) {
            if (count > 0)
                have = staging_try_take(&next->slot);
            else if ((result = staging_take(&next->slot)) == CUDA_SUCCESS)
                have = true;
        }
        if (have) {
            next->piece = piece;
            result = start_download(next, stream);
            count += result == CUDA_SUCCESS;
            more = next_piece(&walk, &piece);
        } else if (count > 0) {
            result = finish_download(&ring[first], stream);
            first = (first + 1) % DOWNLOADS_IN_FLIGHT;
            count--;
        }
    }
    for (; count > 0; count--, first = (first + 1) % DOWNLOADS_IN_FLIGHT)
        staging_give(ring[first].slot, &ring[first].fence);
    return result;
}
