/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The updates that copies and memsets of a launchable graph allow: the kinds of memory must stay
 * the same. A single row may change its length; of several rows only the addresses may change.
 */
#include "graph_exec.h"

static bool is_row(const CUDA_MEMCPY3D *copy)
{
    return copy->Height == 1 && copy->Depth == 1;
}

static bool has_shape_of(const CUDA_MEMCPY3D *copy, const CUDA_MEMCPY3D *other)
{
    bool rows = copy->WidthInBytes == other->WidthInBytes && copy->Height == other->Height &&
                copy->srcPitch == other->srcPitch && copy->dstPitch == other->dstPitch;
    bool slices = copy->srcHeight == other->srcHeight && copy->dstHeight == other->dstHeight;

    return rows && copy->Depth == other->Depth && (copy->Depth == 1 || slices);
}

static bool copy_can_become(const CUDA_MEMCPY3D *copy, const CUDA_MEMCPY3D *next)
{
    if (copy->srcMemoryType != next->srcMemoryType || copy->dstMemoryType != next->dstMemoryType)
        return false;
    return (is_row(copy) && is_row(next)) || has_shape_of(copy, next);
}

static bool fill_can_become(const CUDA_MEMSET_NODE_PARAMS *fill,
                            const CUDA_MEMSET_NODE_PARAMS *next)
{
    if (fill->height == 1 && next->height == 1)
        return true;
    return fill->width == next->width && fill->height == next->height &&
           fill->elementSize == next->elementSize && fill->pitch == next->pitch;
}

bool graph_work_can_become(const struct graph_work *work, const struct graph_work *next)
{
    if (work->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return copy_can_become(&work->copy, &next->copy);
    if (work->type == CU_GRAPH_NODE_TYPE_MEMSET)
        return fill_can_become(&work->fill, &next->fill);
    return true;
}
