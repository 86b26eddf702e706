/* SPDX-License-Identifier: Apache-2.0 */
/* See copy_pageable.h. */
#include "copy_pageable.h"

#include <pthread.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_profile.h"
#include "copy_array.h"
#include "copy_team.h"
#include "staging.h"
#include "stream_commands.h"
#include "streaming_copy.h"
#include "wire_calls.h"

#define INLINE_MAX 16384u
#define SLOT_SIZE GPU_REGION_STAGING_SLOT_SIZE
#define DOWNLOADS_IN_FLIGHT 6u
#define SHARED_FROM (4u << 20)

/* So many copying clients keep the link to the GPU busy without gaps (measured on an H200). */
#define CONTENDED_FROM 3u

/* One copy, for all threads that take part in it. */
struct transfer {
    struct stream *stream;
    pthread_mutex_t lock; /* of what follows */
    struct walk walk;
    bool over;            /* all chunks are handed out, or one has failed */
    CUresult result;      /* the first failure */
    uint32_t correlation; /* of the program's call, for a profiler */
    void (*work)(void *transfer);
};

/* ---- both directions: who does what ---- */

static bool take_chunk(struct transfer *transfer, struct chunk *ret_chunk)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&transfer->lock);

    if (!transfer->over && !walk_next(&transfer->walk, ret_chunk))
        transfer->over = true;
    return !transfer->over;
}

static void record_result(struct transfer *transfer, CUresult result)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&transfer->lock);

    if (result == CUDA_SUCCESS || transfer->result != CUDA_SUCCESS)
        return;
    transfer->result = result;
    transfer->over = true;
}

static bool transfer_over(struct transfer *transfer)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&transfer->lock);

    return transfer->over;
}

static bool is_contended(void)
{
    return channel_load(&client->channel).copiers >= CONTENDED_FROM;
}

/* A helper is inside the library while it works, so that it may wait. Meanwhile no other thread
 * moves the client to another server. Threads of the program are inside already. */
static void take_part(void *context)
{
    struct transfer *transfer = context;
    bool helps = !call_is_inside();

    if (helps) {
        call_begin();
        client_profile_set_correlation(transfer->correlation);
    }
    transfer->work(transfer);
    if (helps)
        call_end();
}

/* A helper may move the client to another server while its owner waits for it. */
static const struct copy_team_wait parked = {call_park, call_unpark_when_open};

/* Waking helpers pays for data that takes one thread a quarter of a millisecond. */
static CUresult transfer_run(const struct box *box, bool upload, struct stream *stream,
                             void (*work)(void *transfer))
{
    struct transfer transfer = {
        .stream = stream,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .walk = walk_begin(box, upload, SLOT_SIZE, upload && is_contended()),
        .correlation = client_profile_correlation(),
        .work = work,
    };
    bool large = box->width * box->height * box->depth >= SHARED_FROM;

    copy_team_run(large ? copy_team_size() : 0, take_part, &transfer, &parked);
    pthread_mutex_destroy(&transfer.lock);
    return transfer.result;
}

/* ---- both directions: the command between slot and window ---- */

static CUresult send_array_chunk(const struct walk *walk, const struct chunk *chunk, uint64_t slot,
                                 struct stream *stream, uint32_t seq)
{
    struct box box = walk->box;

    box.dst = walk->upload ? chunk->window : slot;
    box.src = walk->upload ? slot : chunk->window;
    if (walk->upload) {
        box.src_pitch = chunk->width;
        box.src_height = chunk->rows;
    } else {
        box.dst_pitch = chunk->width;
        box.dst_height = chunk->rows;
    }
    box.width = chunk->width;
    box.height = chunk->rows;
    box.depth = 1;
    return copy_send_array(&box, stream, seq);
}

static CUresult send_row(const struct walk *walk, const struct wire_cuMemcpyAsync *row)
{
    const struct wire_fnCopyUp in = {.dst = row->dst,
                                     .src = row->src,
                                     .ByteCount = row->ByteCount,
                                     .hStream = row->hStream,
                                     .seq = row->seq};

    return walk->contended ? wire_fnCopyUp(&client->channel, &in)
                           : wire_cuMemcpyAsync(&client->channel, row);
}

/* Reads only those members of `walk` that do not change. */
static CUresult send_chunk(const struct walk *walk, const struct chunk *chunk, uint64_t slot,
                           struct stream *stream, struct fence *ret_fence)
{
    bool upload = walk->upload;
    struct wire_cuMemcpy3DAsync_v2 in = {
        .dst = upload ? chunk->window : slot,
        .src = upload ? slot : chunk->window,
        .dst_pitch = upload ? chunk->window_pitch : chunk->width,
        .src_pitch = upload ? chunk->width : chunk->window_pitch,
        .dst_height = chunk->rows,
        .src_height = chunk->rows,
        .width = chunk->width,
        .height = chunk->rows,
        .depth = 1,
        .hStream = stream->handle,
    };
    struct wire_cuMemcpyAsync row = {
        .dst = in.dst, .src = in.src, .ByteCount = in.width, .hStream = in.hStream};
    CUresult result;

    in.seq = row.seq = stream_begin_fenced(stream);
    if (box_has_array(&walk->box))
        result = send_array_chunk(walk, chunk, slot, stream, in.seq);
    else if (chunk->rows == 1)
        result = send_row(walk, &row);
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

static void pack(const struct chunk *chunk, uint64_t slot)
{
    for (uint64_t row = 0; row < chunk->rows; row++)
        streaming_copy((void *)(uintptr_t)(slot + row * chunk->width),
                       (const void *)(uintptr_t)(chunk->host + row * chunk->host_pitch),
                       chunk->width);
}

static CUresult upload_chunk(const struct transfer *transfer, const struct chunk *chunk)
{
    struct fence fence;
    unsigned slot;
    CUresult result = staging_take(&slot);

    if (result != CUDA_SUCCESS)
        return result;
    pack(chunk, staging_address(slot));
    result = send_chunk(&transfer->walk, chunk, staging_address(slot), transfer->stream, &fence);
    staging_give(slot, result == CUDA_SUCCESS ? &fence : NULL);
    return result;
}

static void upload_chunks(void *context)
{
    struct transfer *transfer = context;
    struct chunk chunk;

    while (take_chunk(transfer, &chunk))
        record_result(transfer, upload_chunk(transfer, &chunk));
}

static bool fits_inline(const struct box *box)
{
    return box->height * box->depth == 1 && box->width <= INLINE_MAX && !box->dst_array;
}

CUresult copy_upload(const struct box *box, struct stream *stream)
{
    struct box flat;

    if (fits_inline(box))
        return upload_inline(box, stream);
    flat = box_flatten(box);
    if (fits_inline(&flat))
        return upload_inline(&flat, stream);
    return transfer_run(&flat, true, stream, upload_chunks);
}

/* ---- down ---- */

struct download {
    struct chunk chunk;
    struct fence fence;
    unsigned slot;
};

/* The downloads that one thread has started, oldest first. */
struct downloads {
    struct transfer *transfer;
    struct download ring[DOWNLOADS_IN_FLIGHT];
    unsigned first, count;
};

static void unpack(const struct chunk *chunk, uint64_t slot)
{
    for (uint64_t row = 0; row < chunk->rows; row++)
        streaming_copy((void *)(uintptr_t)(chunk->host + row * chunk->host_pitch),
                       (const void *)(uintptr_t)(slot + row * chunk->width), chunk->width);
}

/* A thread that holds a slot must not wait for another: two such threads could wait for each other.
 * It finishes one of its own instead. */
static bool take_slot(struct downloads *downloads, unsigned *ret_slot)
{
    CUresult result;

    if (downloads->count == DOWNLOADS_IN_FLIGHT)
        return false;
    if (downloads->count > 0)
        return staging_try_take(ret_slot);
    result = staging_take(ret_slot);
    record_result(downloads->transfer, result);
    return result == CUDA_SUCCESS;
}

/* False when there is no slot, or nothing is left to be started. */
static bool start_one(struct downloads *downloads)
{
    unsigned at = (downloads->first + downloads->count) % DOWNLOADS_IN_FLIGHT;
    struct download *next = &downloads->ring[at];
    struct transfer *transfer = downloads->transfer;
    CUresult result;

    if (transfer_over(transfer) || !take_slot(downloads, &next->slot))
        return false;
    if (!take_chunk(transfer, &next->chunk)) {
        staging_give(next->slot, NULL);
        return false;
    }
    result = send_chunk(&transfer->walk, &next->chunk, staging_address(next->slot),
                        transfer->stream, &next->fence);
    record_result(transfer, result);
    if (result == CUDA_SUCCESS)
        downloads->count++;
    else
        staging_give(next->slot, NULL);
    return result == CUDA_SUCCESS;
}

static void finish_one(struct downloads *downloads)
{
    struct download *oldest = &downloads->ring[downloads->first];
    CUresult result =
        fence_wait_traced(oldest->fence, downloads->transfer->stream->handle, FENCE_SPIN);

    if (result == CUDA_SUCCESS)
        unpack(&oldest->chunk, staging_address(oldest->slot));
    staging_give(oldest->slot, result == CUDA_SUCCESS ? NULL : &oldest->fence);
    record_result(downloads->transfer, result);
    downloads->first = (downloads->first + 1) % DOWNLOADS_IN_FLIGHT;
    downloads->count--;
}

static void download_chunks(void *context)
{
    struct downloads downloads = {.transfer = context};

    do {
        while (start_one(&downloads))
            ;
        if (downloads.count > 0)
            finish_one(&downloads);
    } while (downloads.count > 0 || !transfer_over(downloads.transfer));
}

CUresult copy_download(const struct box *box, struct stream *stream)
{
    struct box flat = box_flatten(box);

    return transfer_run(&flat, false, stream, download_chunks);
}
