/* SPDX-License-Identifier: Apache-2.0 */
/* From a box to the node of a graph that copies it. */
#include "copy_capture.h"

#include "cleanup.h"
#include "client_capture.h"

static CUmemorytype memory_type(uint64_t array, enum place place)
{
    return array                   ? CU_MEMORYTYPE_ARRAY
           : place == PLACE_DEVICE ? CU_MEMORYTYPE_DEVICE
                                   : CU_MEMORYTYPE_HOST;
}

static void set_src(CUDA_MEMCPY3D *copy, const struct box *box, enum place place)
{
    copy->srcMemoryType = memory_type(box->src_array, place);
    if (box->src_array) {
        const struct copy_origin at = copy_origin_of(box->src, box->src_pitch, box->src_height);
        copy->srcArray = (CUarray)box->src_array;
        copy->srcXInBytes = at.x, copy->srcY = at.y, copy->srcZ = at.z;
        return;
    }
    copy->srcHost = place == PLACE_DEVICE ? NULL : (const void *)(uintptr_t)box->src;
    copy->srcDevice = place == PLACE_DEVICE ? box->src : 0;
    copy->srcPitch = box->src_pitch;
    copy->srcHeight = box->src_height;
}

static void set_dst(CUDA_MEMCPY3D *copy, const struct box *box, enum place place)
{
    copy->dstMemoryType = memory_type(box->dst_array, place);
    if (box->dst_array) {
        const struct copy_origin at = copy_origin_of(box->dst, box->dst_pitch, box->dst_height);
        copy->dstArray = (CUarray)box->dst_array;
        copy->dstXInBytes = at.x, copy->dstY = at.y, copy->dstZ = at.z;
        return;
    }
    copy->dstHost = place == PLACE_DEVICE ? NULL : (void *)(uintptr_t)box->dst;
    copy->dstDevice = place == PLACE_DEVICE ? box->dst : 0;
    copy->dstPitch = box->dst_pitch;
    copy->dstHeight = box->dst_height;
}

static CUDA_MEMCPY3D node_of_box(const struct box *box, enum place dst, enum place src)
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

bool capture_takes_copy(struct stream *stream, const struct box *box, enum place dst,
                        enum place src, bool sync, CUresult *ret_result)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client_graph_lock);

    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;

    const CUDA_MEMCPY3D copy = node_of_box(box, dst, src);
    *ret_result = sync ? capture_refuse_locked(&stream->capture)
                       : capture_copy_locked(&stream->capture, &copy);
    return true;
}
