/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: made, described, destroyed.
 */
#include <stdlib.h>

#include "soft_array.h"
#include "soft_context.h"

#define LAYERED 1u
#define SURFACE_LDST 2u
#define CUBEMAP 4u
#define TEXTURE_GATHER 8u
#define KNOWN_FLAGS (LAYERED | SURFACE_LDST | CUBEMAP | TEXTURE_GATHER)
#define ROW_ALIGN 32u

bool array_format(CUarray_format format, unsigned channels, struct sg_format *ret_format)
{
    static const struct {
        CUarray_format format;
        enum sg_channel kind;
        uint8_t size;
    } formats[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, SG_CHANNEL_UNSIGNED, 1},
        {CU_AD_FORMAT_UNSIGNED_INT16, SG_CHANNEL_UNSIGNED, 2},
        {CU_AD_FORMAT_UNSIGNED_INT32, SG_CHANNEL_UNSIGNED, 4},
        {CU_AD_FORMAT_SIGNED_INT8, SG_CHANNEL_SIGNED, 1},
        {CU_AD_FORMAT_SIGNED_INT16, SG_CHANNEL_SIGNED, 2},
        {CU_AD_FORMAT_SIGNED_INT32, SG_CHANNEL_SIGNED, 4},
        {CU_AD_FORMAT_HALF, SG_CHANNEL_FLOAT, 2},
        {CU_AD_FORMAT_FLOAT, SG_CHANNEL_FLOAT, 4},
    };

    for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].format != format)
            continue;
        *ret_format = (struct sg_format){formats[i].kind, (uint8_t)channels, formats[i].size};
        return channels == 1 || channels == 2 || channels == 4;
    }
    return false;
}

struct array *array_get_locked(CUarray handle)
{
    return soft_get(SOFT_ARRAY, handle);
}

static uint32_t at_least_one(size_t extent)
{
    return extent ? (uint32_t)extent : 1;
}

static bool within(const struct device *device, size_t extent, CUdevice_attribute most)
{
    return extent <= (size_t)device_attribute(device, most);
}

static bool extents_fit(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (d->Flags & LAYERED)
        return within(device, d->Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH) &&
               within(device, d->Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT) &&
               within(device, d->Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
    if (d->Depth && !(d->Flags & CUBEMAP))
        return within(device, d->Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH) &&
               within(device, d->Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT) &&
               within(device, d->Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
    return within(device, d->Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH) &&
           within(device, d->Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
}

static bool shape_is_valid(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool layered = d->Flags & LAYERED;

    if (d->Width == 0 || (d->Flags & ~KNOWN_FLAGS))
        return false;
    if (d->Flags & CUBEMAP)
        return d->Width == d->Height && d->Depth > 0 &&
               (layered ? d->Depth % 6 == 0 : d->Depth == 6);
    return layered ? d->Depth > 0 : d->Depth == 0 || d->Height > 0;
}

static void lay_out(struct array *array)
{
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    bool has_layers = d->Flags & (LAYERED | CUBEMAP);
    struct sg_level *level = &array->level;
    uint64_t row = d->Width * sg_texel_size(&array->format);

    level->width = (uint32_t)d->Width;
    level->height = at_least_one(d->Height);
    level->depth = has_layers ? 1 : at_least_one(d->Depth);
    level->pitch = (row + ROW_ALIGN - 1) & ~(uint64_t)(ROW_ALIGN - 1);
    level->slice = level->pitch * level->height;
    array->layers = has_layers ? (uint32_t)d->Depth : 1;
    array->size = level->slice * level->depth * array->layers;
}

static CUresult fill_locked(struct array *array)
{
    struct device *device = array->context->device;

    if (!device_charge_locked(device, array->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->pages = calloc(1, array->size);
    array->handle = array->pages ? soft_add(SOFT_ARRAY, array) : 0;
    if (array->handle)
        return CUDA_SUCCESS;
    free(array->pages);
    device_refund_locked(device, array->size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult soft_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct context *context;
    struct sg_format format;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (result)
        return result;
    if (!pHandle || !pAllocateArray ||
        !array_format(pAllocateArray->Format, pAllocateArray->NumChannels, &format) ||
        !shape_is_valid(pAllocateArray) || !extents_fit(context->device, pAllocateArray))
        return CUDA_ERROR_INVALID_VALUE;
    struct array *array = calloc(1, sizeof(*array));
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array = (struct array){
        .references = 1, .context = context, .descriptor = *pAllocateArray, .format = format};
    lay_out(array);
    result = fill_locked(array);
    if (result) {
        free(array);
        return result;
    }
    array->level.address = (uintptr_t)array->pages;
    list_append(&context->arrays, &array->in_context);
    *pHandle = (CUarray)array->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;

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

    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult soft_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR whole;

    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_cuArray3DGetDescriptor_v2(&whole, hArray);
    if (!result)
        *pArrayDescriptor =
            (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return result;
}

CUresult array_side_locked(CUarray handle, const uint64_t at[3], const struct box *box,
                           struct box_side *ret_side)
{
    const struct array *array = array_get_locked(handle);
    uint64_t size[3], extent[3] = {box->width, box->height, box->depth};

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    size[0] = (uint64_t)array->level.width * sg_texel_size(&array->format);
    size[1] = array->level.height;
    size[2] = (uint64_t)array->level.depth * array->layers;
    for (unsigned i = 0; i < 3; i++) {
        if (at[i] > size[i] || extent[i] > size[i] - at[i])
            return CUDA_ERROR_INVALID_VALUE;
    }
    ret_side->pitch = array->level.pitch;
    ret_side->slice = array->level.slice;
    ret_side->address =
        array->level.address + at[2] * ret_side->slice + at[1] * ret_side->pitch + at[0];
    return CUDA_SUCCESS;
}

void array_unref_locked(struct array *array)
{
    if (--array->references)
        return;
    if (array->context->active)
        context_synchronise_locked(array->context);
    list_remove(&array->in_context);
    device_refund_locked(array->context->device, array->size);
    free(array->pages);
    free(array);
}

CUresult soft_cuArrayDestroy(CUarray hArray)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);
    struct array *array;

    if (result)
        return result;
    array = array_get_locked(hArray);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    handles_remove(&soft_handles, SOFT_ARRAY, array->handle);
    array->handle = 0;
    array_unref_locked(array);
    return CUDA_SUCCESS;
}

/* Textures are gone already. */
void arrays_drop_context_locked(struct context *context)
{
    list_for_each_safe(struct array, array, &context->arrays, in_context)
    {
        if (array->handle)
            handles_remove(&soft_handles, SOFT_ARRAY, array->handle);
        array->references = 1;
        array_unref_locked(array);
    }
}
