/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the structures of CUDA's box copies. They differ in type and order, not in names. */
#include "cuda_box.h"

#define SIDE_2D(copy, side)                                                                       \
    .type = (copy)->side##MemoryType, .host = (copy)->side##Host, .device = (copy)->side##Device, \
    .array = (copy)->side##Array, .x = (copy)->side##XInBytes, .y = (copy)->side##Y,              \
    .pitch = (copy)->side##Pitch

#define SIDE_3D(copy, side) \
    SIDE_2D(copy, side), .z = (copy)->side##Z, .height = (copy)->side##Height

struct cuda_box cuda_box_of_2d(const CUDA_MEMCPY2D *copy)
{
    return (struct cuda_box){
        .dst = {SIDE_2D(copy, dst)},
        .src = {SIDE_2D(copy, src)},
        .width = copy->WidthInBytes,
        .height = copy->Height,
        .depth = 1,
    };
}

struct cuda_box cuda_box_of_3d(const CUDA_MEMCPY3D *copy)
{
    return (struct cuda_box){
        .dst = {SIDE_3D(copy, dst)},
        .src = {SIDE_3D(copy, src)},
        .width = copy->WidthInBytes,
        .height = copy->Height,
        .depth = copy->Depth,
    };
}

struct cuda_box cuda_box_of_3d_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return (struct cuda_box){
        .dst = {SIDE_3D(copy, dst)},
        .src = {SIDE_3D(copy, src)},
        .width = copy->WidthInBytes,
        .height = copy->Height,
        .depth = copy->Depth,
    };
}

/* The greatest that CU_DEVICE_ATTRIBUTE_MAX_PITCH is anywhere. */
#define PITCH_MAX 0x7fffffffu

static bool is_memory(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
}

static bool reaches(uint64_t given, uint64_t from, uint64_t count)
{
    return given >= count && given - count >= from;
}

/* The height of a slice is looked at only where there is a second one. */
bool cuda_box_rows_of(const struct cuda_box_side *side, const struct cuda_box *box,
                      struct cuda_box_rows *ret_rows)
{
    uint64_t pitch = side->pitch ? side->pitch : side->x + box->width;
    uint64_t height = side->height ? side->height : side->y + box->height;

    if (!is_memory(side->type) || side->pitch > PITCH_MAX || !reaches(pitch, side->x, box->width) ||
        (box->depth > 1 && !reaches(height, side->y, box->height)))
        return false;
    *ret_rows = (struct cuda_box_rows){
        .base = side->type == CU_MEMORYTYPE_HOST ? (uintptr_t)side->host : side->device,
        .offset = (side->z * height + side->y) * pitch + side->x,
        .pitch = pitch,
        .height = height,
    };
    return true;
}

CUresult cuda_copy_2d(cuda_box_copier copier, const CUDA_MEMCPY2D *copy, CUstream stream, bool sync)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;

    const struct cuda_box box = cuda_box_of_2d(copy);

    return copier(&box, stream, sync);
}

CUresult cuda_copy_3d(cuda_box_copier copier, const CUDA_MEMCPY3D *copy, CUstream stream, bool sync)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;

    const struct cuda_box box = cuda_box_of_3d(copy);

    return copier(&box, stream, sync);
}

CUresult cuda_copy_3d_peer(cuda_box_copier copier, const CUDA_MEMCPY3D_PEER *copy, CUstream stream,
                           bool sync)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;

    const struct cuda_box box = cuda_box_of_3d_peer(copy);

    return copier(&box, stream, sync);
}
