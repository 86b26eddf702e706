/* SPDX-License-Identifier: Apache-2.0 */
/* The cuMemcpy family in two and three dimensions: from CUDA's descriptions to a box. */
#include "client_copy.h"
#include "client_prototypes.h"

/* One side of a description: 2D ones have z, slice height and depth of one. */
struct corner {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    uint64_t x, y, z, pitch, slice_height;
};

static CUresult place_corner(const struct corner *corner, uint64_t width, uint64_t height,
                             uint64_t *ret_address, uint64_t *ret_pitch, uint64_t *ret_height,
                             enum side *ret_side)
{
    uint64_t pitch = corner->pitch ? corner->pitch : corner->x + width;
    uint64_t slice = corner->slice_height ? corner->slice_height : corner->y + height;
    uint64_t base = corner->device;

    if (corner->type == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (corner->type < CU_MEMORYTYPE_HOST || corner->type > CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    if (corner->type == CU_MEMORYTYPE_HOST)
        base = (uintptr_t)corner->host;
    if (pitch < width || pitch - width < corner->x)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = base + (corner->z * slice + corner->y) * pitch + corner->x;
    *ret_pitch = pitch;
    *ret_height = slice;
    *ret_side = corner->type == CU_MEMORYTYPE_HOST     ? SIDE_HOST
                : corner->type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE
                                                       : SIDE_ANY;
    return CUDA_SUCCESS;
}

static CUresult copy_corners(const struct corner *dst, const struct corner *src, uint64_t width,
                             uint64_t height, uint64_t depth, CUstream handle, bool sync)
{
    struct box box = {.width = width, .height = height, .depth = depth};
    enum side dst_side, src_side;
    struct stream *stream;
    CUresult result = stream_enter(handle, &stream);

    if (result == CUDA_SUCCESS)
        result =
            place_corner(dst, width, height, &box.dst, &box.dst_pitch, &box.dst_height, &dst_side);
    if (result == CUDA_SUCCESS)
        result =
            place_corner(src, width, height, &box.src, &box.src_pitch, &box.src_height, &src_side);
    if (result != CUDA_SUCCESS)
        return result;
    return copy_box(&box, dst_side, src_side, stream, sync);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool sync)
{
    struct corner dst, src;

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    dst = (struct corner){p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                          p->dstY,          0,          p->dstPitch,  0};
    src = (struct corner){p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                          p->srcY,          0,          p->srcPitch,  0};
    return copy_corners(&dst, &src, p->WidthInBytes, p->Height, 1, stream, sync);
}

CUresult client_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult client_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult client_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, hStream, false);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool sync)
{
    struct corner dst, src;

    if (!p || p->reserved0 || p->reserved1)
        return CUDA_ERROR_INVALID_VALUE;
    dst = (struct corner){p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                          p->dstY,          p->dstZ,    p->dstPitch,  p->dstHeight};
    src = (struct corner){p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                          p->srcY,          p->srcZ,    p->srcPitch,  p->srcHeight};
    return copy_corners(&dst, &src, p->WidthInBytes, p->Height, p->Depth, stream, sync);
}

CUresult client_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy_3d(pCopy, NULL, true);
}

CUresult client_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d(pCopy, hStream, false);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool sync)
{
    struct corner dst, src;

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    dst = (struct corner){p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                          p->dstY,          p->dstZ,    p->dstPitch,  p->dstHeight};
    src = (struct corner){p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                          p->srcY,          p->srcZ,    p->srcPitch,  p->srcHeight};
    return copy_corners(&dst, &src, p->WidthInBytes, p->Height, p->Depth, stream, sync);
}

CUresult client_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return copy_3d_peer(pCopy, NULL, true);
}

CUresult client_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return copy_3d_peer(pCopy, hStream, false);
}
