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
