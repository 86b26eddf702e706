/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on the descriptions of arrays. */
#include "cuda_array.h"

uint32_t cuda_texel_size(CUarray_format format, uint32_t channels)
{
    if (channels != 1 && channels != 2 && channels != 4)
        return 0;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * channels;
    default:
        return 0;
    }
}

bool cuda_array_has_extent(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
    return array->Width > 0 && array->Width <= CUDA_ARRAY_EXTENT_MAX &&
           array->Height <= CUDA_ARRAY_EXTENT_MAX && array->Depth <= CUDA_ARRAY_EXTENT_MAX;
}

struct cuda_array_bytes cuda_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
    return (struct cuda_array_bytes){
        .pitch = array->Width * cuda_texel_size(array->Format, array->NumChannels),
        .height = array->Height ? array->Height : 1,
        .depth = array->Depth ? array->Depth : 1,
    };
}

bool cuda_array_contains(const CUDA_ARRAY3D_DESCRIPTOR *array, uint64_t x, uint64_t y, uint64_t z,
                         uint64_t width, uint64_t height, uint64_t depth)
{
    const struct cuda_array_bytes bytes = cuda_array_bytes(array);
    uint32_t texel = cuda_texel_size(array->Format, array->NumChannels);

    return x <= bytes.pitch && width <= bytes.pitch - x && y <= bytes.height &&
           height <= bytes.height - y && z <= bytes.depth && depth <= bytes.depth - z &&
           x % texel == 0 && width % texel == 0;
}

/* ---- mipmaps ---- */

static bool has_layers(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
    return array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

unsigned cuda_array_most_levels(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
    size_t largest = array->Width > array->Height ? array->Width : array->Height;
    unsigned levels = 1;

    if (!has_layers(array) && array->Depth > largest)
        largest = array->Depth;
    for (; largest > 1; largest /= 2)
        levels++;
    return levels;
}

static size_t halved(size_t extent, unsigned times)
{
    return extent == 0 ? 0 : extent >> times ? extent >> times : 1;
}

CUDA_ARRAY3D_DESCRIPTOR cuda_array_level(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = *array;

    descriptor.Width = halved(array->Width, level);
    descriptor.Height = halved(array->Height, level);
    descriptor.Depth = has_layers(array) ? array->Depth : halved(array->Depth, level);
    return descriptor;
}

/* ---- views ---- */

bool cuda_view_format(const CUDA_RESOURCE_VIEW_DESC *view, const CUDA_ARRAY3D_DESCRIPTOR *array,
                      CUarray_format *ret_format, unsigned *ret_channels)
{
    /* In the order of the views' formats; each is there with one, two and four channels. */
    static const CUarray_format formats[] = {
        CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,    CU_AD_FORMAT_UNSIGNED_INT16,
        CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
        CU_AD_FORMAT_HALF,          CU_AD_FORMAT_FLOAT,
    };
    unsigned number = (unsigned)view->format - CU_RES_VIEW_FORMAT_UINT_1X8;

    if (view->format == CU_RES_VIEW_FORMAT_NONE) {
        *ret_format = array->Format;
        *ret_channels = array->NumChannels;
        return true;
    }
    if (number / 3 >= sizeof(formats) / sizeof(formats[0]))
        return false;
    *ret_format = formats[number / 3];
    *ret_channels = 1u << number % 3;
    return true;
}

static size_t at_least_one(size_t extent)
{
    return extent ? extent : 1;
}

CUresult cuda_array_check_view(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels,
                               const CUDA_RESOURCE_VIEW_DESC *view)
{
    CUarray_format format;
    unsigned channels;

    if (!cuda_view_format(view, array, &format, &channels))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (cuda_texel_size(format, channels) != cuda_texel_size(array->Format, array->NumChannels) ||
        view->width != array->Width || at_least_one(view->height) != at_least_one(array->Height) ||
        view->firstMipmapLevel > view->lastMipmapLevel || view->lastMipmapLevel >= levels)
        return CUDA_ERROR_INVALID_VALUE;
    if (!has_layers(array))
        return view->firstLayer || view->lastLayer ||
                       at_least_one(view->depth) != at_least_one(array->Depth)
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_SUCCESS;
    return view->firstLayer > view->lastLayer || view->lastLayer >= array->Depth
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}
