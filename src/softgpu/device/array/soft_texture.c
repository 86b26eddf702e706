/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by texture and surface objects: the memory that they are on, and their numbers.
 */
#include "soft_texture.h"

#include <stdlib.h>

#include "array_calls.h"
#include "array_shape.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

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

/* Linear memory may be said to be longer than it is, as NVIDIA's driver has it: kernels must not
 * read what is beyond. */
static uint64_t texels_in_memory(uint64_t address, uint64_t width, unsigned size)
{
    return memory_covered_locked(address, width * size) / size;
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
    unsigned size = sg_texel_size(format);
    uint64_t width = resource->res.linear.sizeInBytes / size;
    if (width > 1u << 28)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t there = texels_in_memory(resource->res.linear.devPtr, width, size);
    texture->unit.is_linear = true;
    texture->unit.beyond = (uint32_t)(width - there);
    return use_memory(texture, resource->res.linear.devPtr, there, 1, there * size);
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
    texture->context = context;
    list_append(&context->textures, &texture->in_context);
    return CUDA_SUCCESS;
}

struct texture *texture_find_locked(uint64_t number, bool is_surface)
{
    struct context *context;

    if (context_use_locked(&context))
        return NULL;
    list_for_each (struct texture, texture, &context->textures, in_context) {
        if (texture->number == number && texture->unit.is_surface == is_surface &&
            !texture->destroyed)
            return texture;
    }
    return NULL;
}

/* Takes the object from the kernels, behind all work that may still read it. */
struct texture_removal {
    struct operation operation;
    struct texture *texture; /* NULL: the context has ended, and the object with it */
};

void texture_free_locked(struct texture *texture)
{
    sg_space_remove_texture(texture->context->space, texture->number);
    list_remove(&texture->in_context);
    if (texture->array)
        array_unref_locked(texture->array);
    if (texture->removal)
        texture->removal->texture = NULL;
    free(texture);
}

static bool removal_start_locked(struct operation *operation)
{
    struct texture_removal *removal = (struct texture_removal *)operation;

    if (removal->texture)
        texture_free_locked(removal->texture);
    return true;
}

static const struct operation_type removal_type = {
    .start_locked = removal_start_locked,
    .always = true,
};

static CUresult destroy_locked(struct texture *texture)
{
    struct texture_removal *removal = operation_create(sizeof(*removal), &removal_type);

    if (!removal)
        return CUDA_ERROR_OUT_OF_MEMORY;
    removal->texture = texture;
    texture->removal = removal;
    texture->destroyed = true;
    list_for_each (struct stream, stream, &texture->context->streams, in_context)
        operation_depend_locked(&removal->operation, stream->last);
    schedule_begin_locked(texture->context, &removal->operation);
    operation_unref_locked(&removal->operation);
    return CUDA_SUCCESS;
}

CUresult texture_destroy_locked(uint64_t number, bool is_surface)
{
    struct context *context;
    CUresult result = context_use_locked(&context);
    struct texture *texture = result ? NULL : texture_find_locked(number, is_surface);

    if (result)
        return result;
    return texture ? destroy_locked(texture) : CUDA_ERROR_INVALID_VALUE;
}

void textures_drop_context_locked(struct context *context)
{
    list_for_each_safe (struct texture, texture, &context->textures, in_context)
        texture_free_locked(texture);
}
