/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call that copies linear memory, put into the one form that copy_submit() takes.
 */
#include "cuda_box.h"
#include "soft_context.h"
#include "soft_copy.h"

static CUresult copy_line(uint64_t to, enum box_place to_place, uint64_t from,
                          enum box_place from_place, size_t size, CUstream stream, bool async)
{
    struct copy_request request = {
        .box = {.to = {.address = to}, .from = {.address = from}, size, 1, 1},
        .to = to_place,
        .from = from_place,
        .stream = stream,
        .async = async,
    };

    return copy_submit(&request);
}

CUresult soft_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_line(dst, PLACE_UNIFIED, src, PLACE_UNIFIED, ByteCount, NULL, false);
}

CUresult soft_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_line(dst, PLACE_UNIFIED, src, PLACE_UNIFIED, ByteCount, hStream, true);
}

CUresult soft_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_line(dstDevice, PLACE_DEVICE, (uintptr_t)srcHost, PLACE_HOST, ByteCount, NULL,
                     false);
}

CUresult soft_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                   CUstream hStream)
{
    return copy_line(dstDevice, PLACE_DEVICE, (uintptr_t)srcHost, PLACE_HOST, ByteCount, hStream,
                     true);
}

CUresult soft_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_line((uintptr_t)dstHost, PLACE_HOST, srcDevice, PLACE_DEVICE, ByteCount, NULL,
                     false);
}

CUresult soft_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream)
{
    return copy_line((uintptr_t)dstHost, PLACE_HOST, srcDevice, PLACE_DEVICE, ByteCount, hStream,
                     true);
}

CUresult soft_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_line(dstDevice, PLACE_DEVICE, srcDevice, PLACE_DEVICE, ByteCount, NULL, false);
}

CUresult soft_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream)
{
    return copy_line(dstDevice, PLACE_DEVICE, srcDevice, PLACE_DEVICE, ByteCount, hStream, true);
}

/* NULL stands for whichever context the memory is in. */
static bool may_be_peers(CUcontext one, CUcontext other)
{
    return (!one || context_get(one)) && (!other || context_get(other));
}

CUresult soft_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount)
{
    if (!may_be_peers(dstContext, srcContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return soft_cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
}

CUresult soft_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    if (!may_be_peers(dstContext, srcContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return soft_cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream);
}

static CUresult read_side(const struct cuda_box_side *side, const struct cuda_box *box,
                          struct box_side *ret_side, enum box_place *ret_place,
                          struct array_part *ret_part)
{
    struct cuda_box_rows rows;

    if (side->type == CU_MEMORYTYPE_ARRAY) {
        *ret_part = (struct array_part){side->array, {side->x, side->y, side->z}};
        *ret_place = PLACE_ARRAY;
        return CUDA_SUCCESS;
    }
    if (!cuda_box_rows_of(side, box, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_side = (struct box_side){
        .address = rows.base + rows.offset,
        .pitch = rows.pitch,
        .slice = rows.pitch * rows.height,
    };
    *ret_place = side->type == CU_MEMORYTYPE_HOST     ? PLACE_HOST
                 : side->type == CU_MEMORYTYPE_DEVICE ? PLACE_DEVICE
                                                      : PLACE_UNIFIED;
    return CUDA_SUCCESS;
}

CUresult copy_request_fill(const struct cuda_box *box, struct copy_request *request)
{
    request->box.width = box->width;
    request->box.height = box->height;
    request->box.depth = box->depth;

    CUresult result = read_side(&box->dst, box, &request->box.to, &request->to, &request->to_part);

    return result
               ? result
               : read_side(&box->src, box, &request->box.from, &request->from, &request->from_part);
}

CUresult copy_described(const struct cuda_box *box, CUstream stream, bool sync)
{
    struct copy_request request = {.stream = stream, .async = !sync};
    CUresult result = copy_request_fill(box, &request);

    return result ? result : copy_submit(&request);
}

CUresult soft_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return cuda_copy_2d(copy_described, pCopy, NULL, true);
}

CUresult soft_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return cuda_copy_2d(copy_described, pCopy, NULL, true);
}

CUresult soft_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return cuda_copy_2d(copy_described, pCopy, hStream, false);
}

CUresult soft_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return cuda_copy_3d(copy_described, pCopy, NULL, true);
}

CUresult soft_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return cuda_copy_3d(copy_described, pCopy, hStream, false);
}

CUresult soft_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return cuda_copy_3d_peer(copy_described, pCopy, NULL, true);
}

CUresult soft_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return cuda_copy_3d_peer(copy_described, pCopy, hStream, false);
}
