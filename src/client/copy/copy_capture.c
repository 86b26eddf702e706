/* SPDX-License-Identifier: Apache-2.0 */
/* From a box to the node of a graph that copies it. */
#include "copy_capture.h"

#include "cleanup.h"
#include "client_call.h"
#include "client_capture.h"

/* What the call says of a side stays that of the node, which cannot be set to another kind. */
static CUmemorytype memory_type(uint64_t array, enum side side)
{
    if (array)
        return CU_MEMORYTYPE_ARRAY;
    return side == SIDE_HOST     ? CU_MEMORYTYPE_HOST
           : side == SIDE_DEVICE ? CU_MEMORYTYPE_DEVICE
                                 : CU_MEMORYTYPE_UNIFIED;
}

static void set_src(CUDA_MEMCPY3D *copy, const struct box *box, enum side side)
{
    copy->srcMemoryType = memory_type(box->src_array, side);
    if (box->src_array) {
        const struct copy_origin at = copy_origin_of(box->src, box->src_pitch, box->src_height);
        copy->srcArray = (CUarray)box->src_array;
        copy->srcXInBytes = at.x, copy->srcY = at.y, copy->srcZ = at.z;
        return;
    }
    copy->srcHost = side == SIDE_HOST ? (const void *)(uintptr_t)box->src : NULL;
    copy->srcDevice = side == SIDE_HOST ? 0 : box->src;
    copy->srcPitch = box->src_pitch;
    copy->srcHeight = box->src_height;
}

static void set_dst(CUDA_MEMCPY3D *copy, const struct box *box, enum side side)
{
    copy->dstMemoryType = memory_type(box->dst_array, side);
    if (box->dst_array) {
        const struct copy_origin at = copy_origin_of(box->dst, box->dst_pitch, box->dst_height);
        copy->dstArray = (CUarray)box->dst_array;
        copy->dstXInBytes = at.x, copy->dstY = at.y, copy->dstZ = at.z;
        return;
    }
    copy->dstHost = side == SIDE_HOST ? (void *)(uintptr_t)box->dst : NULL;
    copy->dstDevice = side == SIDE_HOST ? 0 : box->dst;
    copy->dstPitch = box->dst_pitch;
    copy->dstHeight = box->dst_height;
}

static CUDA_MEMCPY3D node_of_box(const struct box *box, enum side dst, enum side src)
{
    CUDA_MEMCPY3D copy = {
        .WidthInBytes = box->width,
        .Height = box->height,
        .Depth = box->depth,
    };

    set_src(&copy, box, src);
    set_dst(&copy, box, dst);
    return copy;
}

bool capture_takes_copy(struct stream *stream, const struct box *box, enum side dst, enum side src,
                        bool sync, CUresult *ret_result)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock);

    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;

    const CUDA_MEMCPY3D copy = node_of_box(box, dst, src);
    *ret_result = sync ? capture_refuse_locked(&stream->capture)
                       : capture_copy_locked(&stream->capture, &copy);
    return true;
}
