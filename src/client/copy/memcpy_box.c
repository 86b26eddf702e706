/* SPDX-License-Identifier: Apache-2.0 */
/* The cuMemcpy family in two and three dimensions: from CUDA's descriptions to a box. */
#include "client_array.h"
#include "client_copy.h"
#include "client_prototypes.h"
#include "cuda_array.h"

/* Offsets in an array are counted as if its rows were packed. */
static CUresult place_array(const struct cuda_box_side *side, const struct cuda_box *box,
                            uint64_t *ret_offset, uint64_t *ret_pitch, uint64_t *ret_height,
                            uint64_t *ret_array)
{
    const struct array *array = array_lookup(side->array);
    struct cuda_array_bytes bytes;

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cuda_array_contains(&array->descriptor, side->x, side->y, side->z, box->width, box->height,
                             box->depth))
        return CUDA_ERROR_INVALID_VALUE;
    bytes = cuda_array_bytes(&array->descriptor);
    *ret_offset = (side->z * bytes.height + side->y) * bytes.pitch + side->x;
    *ret_pitch = bytes.pitch;
    *ret_height = bytes.height;
    *ret_array = array->handle;
    return CUDA_SUCCESS;
}

static CUresult place_side(const struct cuda_box_side *side, const struct cuda_box *box,
                           uint64_t *ret_address, uint64_t *ret_pitch, uint64_t *ret_height,
                           enum side *ret_side)
{
    struct cuda_box_rows rows;

    if (!cuda_box_rows_of(side, box, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = rows.base + rows.offset;
    *ret_pitch = rows.pitch;
    *ret_height = rows.height;
    *ret_side = side->type == CU_MEMORYTYPE_HOST     ? SIDE_HOST
                : side->type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE
                                                     : SIDE_ANY;
    return CUDA_SUCCESS;
}

static CUresult place_dst(const struct cuda_box *from, struct box *box, enum side *ret_side)
{
    *ret_side = SIDE_DEVICE;
    if (from->dst.type == CU_MEMORYTYPE_ARRAY)
        return place_array(&from->dst, from, &box->dst, &box->dst_pitch, &box->dst_height,
                           &box->dst_array);
    return place_side(&from->dst, from, &box->dst, &box->dst_pitch, &box->dst_height, ret_side);
}

static CUresult place_src(const struct cuda_box *from, struct box *box, enum side *ret_side)
{
    *ret_side = SIDE_DEVICE;
    if (from->src.type == CU_MEMORYTYPE_ARRAY)
        return place_array(&from->src, from, &box->src, &box->src_pitch, &box->src_height,
                           &box->src_array);
    return place_side(&from->src, from, &box->src, &box->src_pitch, &box->src_height, ret_side);
}

CUresult copy_box_of(const struct cuda_box *from, struct box *ret_box, enum side *ret_dst_side,
                     enum side *ret_src_side)
{
    struct box box = {.width = from->width, .height = from->height, .depth = from->depth};
    CUresult result = place_dst(from, &box, ret_dst_side);

    if (result == CUDA_SUCCESS)
        result = place_src(from, &box, ret_src_side);
    if (result == CUDA_SUCCESS)
        *ret_box = box;
    return result;
}

CUresult copy_described(const struct cuda_box *from, CUstream handle, bool sync)
{
    enum side dst_side, src_side;
    struct stream *stream;
    struct box box;
    CUresult result = stream_enter(handle, &stream);

    if (result == CUDA_SUCCESS)
        result = copy_box_of(from, &box, &dst_side, &src_side);
    if (result != CUDA_SUCCESS)
        return result;
    return copy_box(&box, dst_side, src_side, stream, sync);
}

CUresult client_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return cuda_copy_2d(copy_described, pCopy, NULL, true);
}

CUresult client_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return cuda_copy_2d(copy_described, pCopy, NULL, true);
}

CUresult client_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return cuda_copy_2d(copy_described, pCopy, hStream, false);
}

CUresult client_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return cuda_copy_3d(copy_described, pCopy, NULL, true);
}

CUresult client_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return cuda_copy_3d(copy_described, pCopy, hStream, false);
}

CUresult client_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return cuda_copy_3d_peer(copy_described, pCopy, NULL, true);
}

CUresult client_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return cuda_copy_3d_peer(copy_described, pCopy, hStream, false);
}
