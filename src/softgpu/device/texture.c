/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What texture and surface objects have in common: the memory that they are on, and their numbers.
 */
#include "soft_texture.h"

#include <stdlib.h>

#include "soft_context.h"
#include "soft_memory.h"

static CUresult use_array(struct array *array, struct texture *texture)
{
    struct sg_texture *unit = &texture->unit;

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    texture->array = array;
    unit->format = array->format;
    unit->layers = array->layers;
    unit->level_count = array->level_count;
    for (unsigned i = 0; i < array->level_count; i++)
        unit->levels[i] = array->levels[i];
    return CUDA_SUCCESS;
}

static CUresult use_memory(struct texture *texture, uint64_t address, uint64_t width,
                           uint64_t height, uint64_t pitch)
{
    uint64_t row = width * sg_texel_size(&texture->unit.format), size;

    if (address == 0 || address % 512 || width == 0 || height == 0 || width > 1u << 28 ||
        height > 65536 || pitch < row || __builtin_mul_overflow(pitch, height - 1, &size) ||
        __builtin_add_overflow(size, row, &size) || !memory_covers_locked(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    texture->unit.levels[0] =
        (struct sg_level){address, pitch, 0, (uint32_t)width, (uint32_t)height, 1};
    texture->unit.layers = 1;
    texture->unit.checked_size = size;
    return CUDA_SUCCESS;
}

static CUresult use_linear(const CUDA_RESOURCE_DESC *resource, struct texture *texture)
{
    struct sg_format *format = &texture->unit.format;

    if (!array_format(resource->res.linear.format, resource->res.linear.numChannels, format))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t width = resource->res.linear.sizeInBytes / sg_texel_size(format);
    texture->unit.is_linear = true;
    return use_memory(texture, resource->res.linear.devPtr, width, 1,
                      width * sg_texel_size(format));
}

static CUresult use_pitch2d(const CUDA_RESOURCE_DESC *resource, struct texture *texture)
{
    if (!array_format(resource->res.pitch2D.format, resource->res.pitch2D.numChannels,
                      &texture->unit.format) ||
        resource->res.pitch2D.pitchInBytes % 32)
        return CUDA_ERROR_INVALID_VALUE;
    return use_memory(texture, resource->res.pitch2D.devPtr, resource->res.pitch2D.width,
                      resource->res.pitch2D.height, resource->res.pitch2D.pitchInBytes);
}

CUresult texture_use_resource_locked(const CUDA_RESOURCE_DESC *resource, struct texture *texture)
{
    texture->resource = *resource;
    texture->unit.level_count = 1;
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return use_array(array_get_locked(resource->res.array.hArray), texture);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return use_array(array_get_mipmap_locked(resource->res.mipmap.hMipmappedArray), texture);
    case CU_RESOURCE_TYPE_LINEAR:
        return use_linear(resource, texture);
    case CU_RESOURCE_TYPE_PITCH2D:
        return use_pitch2d(resource, texture);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult texture_enter_locked(struct context *context, struct texture *texture)
{
    if (sg_space_add_texture(context->space, &texture->unit, &texture->number))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (texture->array)
        texture->array->references++;
    list_append(&context->textures, &texture->in_context);
    return CUDA_SUCCESS;
}

struct texture *texture_find_locked(uint64_t number, bool is_surface)
{
    struct context *context;

    if (context_use_locked(&context))
        return NULL;
    list_for_each(struct texture, texture, &context->textures, in_context)
    {
        if (texture->number == number && texture->unit.is_surface == is_surface)
            return texture;
    }
    return NULL;
}

static void destroy_locked(struct context *context, struct texture *texture)
{
    sg_space_remove_texture(context->space, texture->number);
    list_remove(&texture->in_context);
    if (texture->array)
        array_unref_locked(texture->array);
    free(texture);
}

CUresult texture_destroy_locked(uint64_t number, bool is_surface)
{
    struct context *context;
    CUresult result = context_use_locked(&context);
    struct texture *texture = result ? NULL : texture_find_locked(number, is_surface);

    if (texture)
        destroy_locked(context, texture);
    return result ? result : texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void textures_drop_context_locked(struct context *context)
{
    list_for_each_safe(struct texture, texture, &context->textures, in_context)
        destroy_locked(context, texture);
}
