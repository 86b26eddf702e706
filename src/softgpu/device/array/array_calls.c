/* SPDX-License-Identifier: Apache-2.0 */
/* See array_calls.h. */
#include "array_calls.h"

#include <stdlib.h>

#include "array_shape.h"
#include "cuda_array.h"
#include "device_sync.h"
#include "soft_context.h"
#include "soft_stream.h"

#define ROW_ALIGN 32u

struct array *array_get_locked(CUarray handle)
{
    return soft_get(SOFT_ARRAY, handle);
}

static uint32_t at_least_one(size_t extent)
{
    return extent ? (uint32_t)extent : 1;
}

static void lay_out_level(struct array *array, unsigned index)
{
    const CUDA_ARRAY3D_DESCRIPTOR d = cuda_array_level(&array->descriptor, index);
    bool has_layers = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    struct sg_level *level = &array->levels[index];
    uint64_t row = d.Width * sg_texel_size(&array->format);

    level->address = array->size;
    level->width = (uint32_t)d.Width;
    level->height = at_least_one(d.Height);
    level->depth = has_layers ? 1 : at_least_one(d.Depth);
    level->pitch = (row + ROW_ALIGN - 1) & ~(uint64_t)(ROW_ALIGN - 1);
    level->slice = level->pitch * level->height;
    array->layers = has_layers ? (uint32_t)d.Depth : 1;
    array->size += level->slice * level->depth * array->layers;
}

/* Levels lie one behind the other; their addresses are offsets until there is memory. */
static CUresult fill_locked(struct array *array, enum soft_handle_type type)
{
    struct device *device = array->context->device;

    for (unsigned i = 0; i < array->level_count; i++)
        lay_out_level(array, i);
    if (!device_charge_locked(device, array->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->pages = calloc(1, array->size);
    array->handle = array->pages ? soft_add(type, array) : 0;
    for (unsigned i = 0; i < array->level_count; i++)
        array->levels[i].address += (uintptr_t)array->pages;
    if (array->handle)
        return CUDA_SUCCESS;
    free(array->pages);
    device_refund_locked(device, array->size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult array_create_locked(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, enum soft_handle_type type,
                             unsigned levels, struct array **ret_array)
{
    struct context *context;
    struct sg_format format;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = capture_unsafe_locked();
    if (result)
        return result;
    if (!array_format(descriptor->Format, descriptor->NumChannels, &format) ||
        !array_is_possible(context->device, descriptor, type == SOFT_MIPMAP))
        return CUDA_ERROR_INVALID_VALUE;
    struct array *array = calloc(1, sizeof(*array));
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array = (struct array){.references = 1,
                            .context = context,
                            .descriptor = *descriptor,
                            .format = format,
                            .level_count = levels};
    result = fill_locked(array, type);
    if (result) {
        free(array);
        return result;
    }
    list_append(&context->arrays, &array->in_context);
    *ret_array = array;
    return CUDA_SUCCESS;
}

CUresult soft_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    SOFT_LOCKED;
    struct array *array;

    CUresult result = array_create_locked(pAllocateArray, SOFT_ARRAY, 1, &array);
    if (!result)
        *pHandle = (CUarray)array->handle;
    return result;
}

CUresult soft_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = pAllocateArray->Width,
        .Height = pAllocateArray->Height,
        .Format = pAllocateArray->Format,
        .NumChannels = pAllocateArray->NumChannels,
    };

    return soft_cuArray3DCreate_v2(pHandle, &descriptor);
}

CUresult soft_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    SOFT_LOCKED;
    const struct array *array = array_get_locked(hArray);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult soft_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR whole;

    CUresult result = soft_cuArray3DGetDescriptor_v2(&whole, hArray);
    if (!result)
        *pArrayDescriptor =
            (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return result;
}

/* ---- Questions about kinds of arrays that there are not ---- */

static CUresult refuse_array(const void *array)
{
    return array ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult soft_cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    SOFT_LOCKED;

    (void)pPlaneArray;
    (void)planeIdx;
    return refuse_array(array_get_locked(hArray));
}

CUresult soft_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                         CUarray array)
{
    SOFT_LOCKED;

    (void)sparseProperties;
    return refuse_array(array_get_locked(array));
}

CUresult soft_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                           CUarray array, CUdevice device)
{
    SOFT_LOCKED;

    (void)memoryRequirements;
    (void)device;
    return refuse_array(array_get_locked(array));
}

CUresult soft_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                                  CUmipmappedArray mipmap)
{
    SOFT_LOCKED;

    (void)sparseProperties;
    return refuse_array(array_get_mipmap_locked(mipmap));
}

CUresult
soft_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                           CUmipmappedArray mipmap, CUdevice device)
{
    SOFT_LOCKED;

    (void)memoryRequirements;
    (void)device;
    return refuse_array(array_get_mipmap_locked(mipmap));
}

/* ---- Copies ---- */

CUresult array_side_locked(CUarray handle, const uint64_t at[3], const struct box *box,
                           struct box_side *ret_side)
{
    const struct array *array = array_get_locked(handle);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cuda_array_contains(&array->descriptor, at[0], at[1], at[2], box->width, box->height,
                             box->depth))
        return CUDA_ERROR_INVALID_VALUE;
    ret_side->pitch = array->levels[0].pitch;
    ret_side->slice = array->levels[0].slice;
    ret_side->address =
        array->levels[0].address + at[2] * ret_side->slice + at[1] * ret_side->pitch + at[0];
    return CUDA_SUCCESS;
}

/* ---- Ends ---- */

void array_retire_locked(struct array *array)
{
    handles_remove(&soft_handles, handle_type(array->handle), array->handle);
    array->handle = 0;
    array_unref_locked(array);
}

static void array_free_locked(struct array *array)
{
    list_remove(&array->in_context);
    if (!array->parent) {
        device_refund_locked(array->context->device, array->size);
        free(array->pages);
    }
    free(array);
}

void array_unref_locked(struct array *array)
{
    struct array *parent = array->parent;

    if (--array->references)
        return;
    array_free_locked(array);
    if (parent)
        array_unref_locked(parent);
}

CUresult array_await_locked(void)
{
    struct context *context;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = capture_unsafe_locked();
    return result ? result : device_sync_locked(context);
}

/* A level lives as long as the array that it is one of, and cannot be destroyed by itself. */
CUresult soft_cuArrayDestroy(CUarray hArray)
{
    SOFT_LOCKED;
    CUresult result = array_await_locked();
    struct array *array;

    if (result)
        return result;
    array = array_get_locked(hArray);
    if (!array || array->parent)
        return CUDA_ERROR_INVALID_HANDLE;
    array_retire_locked(array);
    return CUDA_SUCCESS;
}

/* Textures are gone already. */
void arrays_drop_context_locked(struct context *context)
{
    list_for_each_safe (struct array, array, &context->arrays, in_context) {
        if (array->handle)
            handles_remove(&soft_handles, handle_type(array->handle), array->handle);
        array_free_locked(array);
    }
}
