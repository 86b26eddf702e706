/* SPDX-License-Identifier: Apache-2.0 */
/* See copy_array.h. */
#include "copy_array.h"

#include "stream_commands.h"
#include "wire_calls.h"

static CUresult send_between(const struct box *box, struct stream *stream, uint32_t seq)
{
    const struct copy_origin dst = copy_origin_of(box->dst, box->dst_pitch, box->dst_height);
    const struct copy_origin src = copy_origin_of(box->src, box->src_pitch, box->src_height);
    const struct wire_cuMemcpyAtoA_v2 in = {
        .dstArray = box->dst_array,
        .dst_x = dst.x,
        .dst_y = dst.y,
        .dst_z = dst.z,
        .srcArray = box->src_array,
        .src_x = src.x,
        .src_y = src.y,
        .src_z = src.z,
        .width = box->width,
        .height = box->height,
        .depth = box->depth,
        .hStream = stream->handle,
        .seq = seq,
    };

    return wire_cuMemcpyAtoA_v2(&client->channel, &in);
}

CUresult copy_send_array(const struct box *box, struct stream *stream, uint32_t seq)
{
    bool into = box->dst_array;
    const struct copy_origin at = into ? copy_origin_of(box->dst, box->dst_pitch, box->dst_height)
                                       : copy_origin_of(box->src, box->src_pitch, box->src_height);
    const struct wire_fnArrayCopy in = {
        .array = into ? box->dst_array : box->src_array,
        .x = at.x,
        .y = at.y,
        .z = at.z,
        .address = into ? box->src : box->dst,
        .pitch = into ? box->src_pitch : box->dst_pitch,
        .slice_rows = into ? box->src_height : box->dst_height,
        .width = box->width,
        .height = box->height,
        .depth = box->depth,
        .into = into,
        .hStream = stream->handle,
        .seq = seq,
    };

    if (box->dst_array && box->src_array)
        return send_between(box, stream, seq);
    return wire_fnArrayCopy(&client->channel, &in);
}

CUresult copy_array(const struct box *box, struct stream *stream)
{
    struct box seen = *box;
    CUresult result;

    copy_on_device(&seen);
    stream_begin(stream);
    result = copy_send_array(&seen, stream, 0);
    stream_end();
    return result;
}
