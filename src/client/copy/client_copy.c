/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies. Both sides are classified by address. Inside the window the GPU copies alone;
 * copy_pageable.c copies pageable memory.
 */
#include "client_copy.h"

#include <string.h>

#include "client_capture.h"
#include "client_peer_access.h"
#include "copy_array.h"
#include "copy_capture.h"
#include "copy_pageable.h"
#include "copy_plan.h"
#include "host_register.h"
#include "managed_hooks.h"
#include "stream_commands.h"
#include "stream_wait.h"
#include "wire_calls.h"

/* From here on a synchronous upload waits for the device, as CUDA's does. */
#define SMALL_UPLOAD 65536u

static uint64_t extent(uint64_t pitch, uint64_t slice_height, const struct box *box)
{
    return ((box->depth - 1) * slice_height + box->height - 1) * pitch + box->width;
}

static CUresult classify(uint64_t address, uint64_t size, uint64_t array, enum side side,
                         enum place *ret_place)
{
    enum place place = array ? PLACE_DEVICE : address_map_place(address, size);

    if (place == PLACE_NOWHERE || (!array && address == 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (side == SIDE_DEVICE && place == PLACE_PAGEABLE)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_place = place;
    return CUDA_SUCCESS;
}

static CUresult send_row(const struct box *box, struct stream *stream)
{
    struct wire_cuMemcpyAsync in = {
        .dst = box->dst,
        .src = box->src,
        .ByteCount = box->width,
        .hStream = stream->handle,
    };
    CUresult result;

    stream_begin(stream);
    result = wire_cuMemcpyAsync(&client->channel, &in);
    stream_end();
    return result;
}

static CUresult send_box(const struct box *box, struct stream *stream)
{
    struct wire_cuMemcpy3DAsync_v2 in = {
        .dst = box->dst,
        .src = box->src,
        .dst_pitch = box->dst_pitch,
        .dst_height = box->dst_height,
        .src_pitch = box->src_pitch,
        .src_height = box->src_height,
        .width = box->width,
        .height = box->height,
        .depth = box->depth,
        .hStream = stream->handle,
    };
    CUresult result;

    stream_begin(stream);
    result = wire_cuMemcpy3DAsync_v2(&client->channel, &in);
    stream_end();
    return result;
}

void copy_rows(const struct box *box)
{
    for (uint64_t z = 0; z < box->depth; z++)
        for (uint64_t y = 0; y < box->height; y++) {
            uint64_t dst = box->dst + (z * box->dst_height + y) * box->dst_pitch;
            uint64_t src = box->src + (z * box->src_height + y) * box->src_pitch;

            memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, box->width);
        }
}

/* Between two places of the program's own memory the calling thread copies, after the stream. */
static CUresult copy_on_host(const struct box *box, struct stream *stream)
{
    CUresult result = stream_synchronize(stream);

    if (result == CUDA_SUCCESS)
        copy_rows(box);
    return result;
}

/* A stream that does not wait for this one may use the data right after the call returned. */
static CUresult finish_upload(const struct box *box, struct stream *stream)
{
    uint64_t size = box->width * box->height * box->depth;

    if (size <= SMALL_UPLOAD && !stream_has_independent(stream))
        return CUDA_SUCCESS;
    return stream_synchronize(stream);
}

void copy_on_device(struct box *box)
{
    if (!box->dst_array)
        box->dst = host_register_on_device(box->dst);
    if (!box->src_array)
        box->src = host_register_on_device(box->src);
}

static void prepare_peers(const struct box *box, struct device *device, enum place dst,
                          enum place src)
{
    if (dst == PLACE_DEVICE && !box->dst_array)
        peer_prepare_copy(device, box->dst);
    if (src == PLACE_DEVICE && !box->src_array)
        peer_prepare_copy(device, box->src);
}

static CUresult copy_in_window(const struct box *box, enum place dst, enum place src,
                               struct stream *stream, bool sync)
{
    struct box seen = *box;
    CUresult result;

    copy_on_device(&seen);
    if (client->device_count > 1)
        prepare_peers(&seen, stream->device, dst, src);
    if (box_has_array(box))
        result = copy_array(box, stream);
    else
        result = seen.height * seen.depth == 1 ? send_row(&seen, stream) : send_box(&seen, stream);

    if (result != CUDA_SUCCESS || !sync || (dst == PLACE_DEVICE && src == PLACE_DEVICE))
        return result;
    return stream_synchronize(stream);
}

CUresult copy_classify(const struct box *box, enum side dst_side, enum side src_side,
                       enum place *ret_dst, enum place *ret_src)
{
    CUresult result = classify(box->dst, extent(box->dst_pitch, box->dst_height, box),
                               box->dst_array, dst_side, ret_dst);

    if (result == CUDA_SUCCESS)
        result = classify(box->src, extent(box->src_pitch, box->src_height, box), box->src_array,
                          src_side, ret_src);
    return result;
}

static CUresult copy_between(const struct box *box, enum place dst, enum place src,
                             struct stream *stream, bool sync)
{
    CUresult result;

    if (dst == PLACE_PAGEABLE && src != PLACE_DEVICE)
        return copy_on_host(box, stream);
    if (dst == PLACE_PINNED && src == PLACE_PAGEABLE)
        return copy_on_host(box, stream);
    if (src == PLACE_PAGEABLE) {
        result = copy_upload(box, stream);
        return result == CUDA_SUCCESS && sync ? finish_upload(box, stream) : result;
    }
    if (dst == PLACE_PAGEABLE) {
        result = copy_download(box, stream);
        return result == CUDA_SUCCESS ? client_sync_error() : result;
    }
    return copy_in_window(box, dst, src, stream, sync);
}

static void use_managed(const struct box *box)
{
    if (!box->dst_array)
        managed_use(box->dst, extent(box->dst_pitch, box->dst_height, box));
    if (!box->src_array)
        managed_use(box->src, extent(box->src_pitch, box->src_height, box));
}

/* After a synchronous copy the program may read the destination and write the source. That holds
 * between two places on the device, too, since the program has managed memory at hand. */
static CUresult finish_managed(CUresult result, struct stream *stream, bool sync)
{
    managed_work();
    return result == CUDA_SUCCESS && sync ? stream_synchronize(stream) : result;
}

static bool uses_managed(const struct box *box)
{
    return managed_holds(box->dst) || managed_holds(box->src);
}

CUresult copy_box(const struct box *box, enum side dst_side, enum side src_side,
                  struct stream *stream, bool sync)
{
    enum place dst, src;
    CUresult result;

    if (box_is_empty(box))
        return CUDA_SUCCESS;
    result = copy_classify(box, dst_side, src_side, &dst, &src);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream_is_plain(stream) &&
        capture_takes_copy(stream, box, dst_side, src_side, sync, &result))
        return result;
    if (managed_any())
        use_managed(box);
    result = copy_between(box, dst, src, stream, sync);
    return uses_managed(box) ? finish_managed(result, stream, sync) : result;
}

CUresult copy_bytes(uint64_t dst, enum side dst_side, uint64_t src, enum side src_side,
                    uint64_t size, struct stream *stream, bool sync)
{
    struct box box = {
        .dst = dst,
        .src = src,
        .dst_pitch = size,
        .src_pitch = size,
        .dst_height = 1,
        .src_height = 1,
        .width = size,
        .height = 1,
        .depth = 1,
    };

    return copy_box(&box, dst_side, src_side, stream, sync);
}
