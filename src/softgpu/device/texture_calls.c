/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture objects: an array or linear memory, and how it is read. The object's value is the number
 * that kernels look it up by in their space.
 */
#include <stdlib.h>
#include <string.h>

#include "soft_array.h"
#include "soft_context.h"
#include "soft_memory.h"

#define READ_AS_INTEGER 1u
#define NORMALIZED_COORDINATES 2u
#define SRGB 0x10u
#define DISABLE_TRILINEAR_OPTIMIZATION 0x20u
#define KNOWN_FLAGS \
    (READ_AS_INTEGER | NORMALIZED_COORDINATES | SRGB | DISABLE_TRILINEAR_OPTIMIZATION)

struct texture {
    struct sg_texture unit; /* first: what the space gives back */
    uint64_t number;
    struct array *array; /* NULL for linear memory */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC description;
    struct list in_context;
};

static CUresult use_array(const CUDA_RESOURCE_DESC *resource, struct texture *texture)
{
    struct array *array = array_get_locked(resource->res.array.hArray);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    texture->array = array;
    texture->unit.format = array->format;
    texture->unit.levels[0] = array->level;
    texture->unit.layers = array->layers;
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

static CUresult use_resource(const CUDA_RESOURCE_DESC *resource, struct texture *texture)
{
    texture->resource = *resource;
    texture->unit.level_count = 1;
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return use_array(resource, texture);
    case CU_RESOURCE_TYPE_LINEAR:
        return use_linear(resource, texture);
    case CU_RESOURCE_TYPE_PITCH2D:
        return use_pitch2d(resource, texture);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult use_description(const CUDA_TEXTURE_DESC *description, struct texture *texture)
{
    struct sg_texture *unit = &texture->unit;

    if (description->flags & ~KNOWN_FLAGS)
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((unsigned)description->filterMode > CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < 3; i++) {
        if ((unsigned)description->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        unit->address[i] = (uint8_t)description->addressMode[i];
    }
    texture->description = *description;
    unit->normalized = description->flags & NORMALIZED_COORDINATES;
    unit->as_float = !(description->flags & READ_AS_INTEGER) &&
                     unit->format.kind != SG_CHANNEL_FLOAT && unit->format.size < 4;
    unit->srgb = description->flags & SRGB && unit->format.size == 1;
    unit->filter_linear = description->filterMode == CU_TR_FILTER_MODE_LINEAR;
    memcpy(unit->border, description->borderColor, sizeof(unit->border));
    return CUDA_SUCCESS;
}

static CUresult enter_locked(struct context *context, struct texture *texture)
{
    if (sg_space_add_texture(context->space, &texture->unit, &texture->number))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (texture->array)
        texture->array->references++;
    list_append(&context->textures, &texture->in_context);
    return CUDA_SUCCESS;
}

CUresult soft_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                                const CUDA_TEXTURE_DESC *pTexDesc,
                                const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (result)
        return result;
    if (!pTexObject || !pResDesc || !pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    if (pResViewDesc)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct texture *texture = calloc(1, sizeof(*texture));
    if (!texture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = use_resource(pResDesc, texture);
    if (!result)
        result = use_description(pTexDesc, texture);
    if (!result)
        result = enter_locked(context, texture);
    if (result)
        free(texture);
    else
        *pTexObject = texture->number;
    return result;
}

static struct texture *find_locked(CUtexObject number)
{
    struct context *context;

    if (context_use_locked(&context))
        return NULL;
    list_for_each(struct texture, texture, &context->textures, in_context)
    {
        if (texture->number == number)
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

CUresult soft_cuTexObjectDestroy(CUtexObject texObject)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);
    struct texture *texture = result ? NULL : find_locked(texObject);

    if (texture)
        destroy_locked(context, texture);
    return result ? result : texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    SOFT_LOCKED;
    const struct texture *texture = find_locked(texObject);

    if (!pResDesc || !texture)
        return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = texture->resource;
    return CUDA_SUCCESS;
}

CUresult soft_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    SOFT_LOCKED;
    const struct texture *texture = find_locked(texObject);

    if (!pTexDesc || !texture)
        return CUDA_ERROR_INVALID_VALUE;
    *pTexDesc = texture->description;
    return CUDA_SUCCESS;
}

void textures_drop_context_locked(struct context *context)
{
    list_for_each_safe(struct texture, texture, &context->textures, in_context)
        destroy_locked(context, texture);
}
