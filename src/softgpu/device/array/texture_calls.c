/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture objects: how elements are read, and views of arrays as if they were others.
 */
#include <stdlib.h>
#include <string.h>

#include "array_shape.h"
#include "cuda_array.h"
#include "soft_context.h"
#include "soft_texture.h"

#define KNOWN_FLAGS                                                            \
    (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

/* ---- views ---- */

static void view_levels(const CUDA_RESOURCE_VIEW_DESC *view, struct sg_texture *unit)
{
    unit->level_count = view->lastMipmapLevel - view->firstMipmapLevel + 1;
    memmove(unit->levels, unit->levels + view->firstMipmapLevel,
            unit->level_count * sizeof(unit->levels[0]));
}

/* Without layers both are 0. */
static void view_layers(const CUDA_RESOURCE_VIEW_DESC *view, struct sg_texture *unit)
{
    unit->layers = view->lastLayer - view->firstLayer + 1;
    for (unsigned i = 0; i < unit->level_count; i++)
        unit->levels[i].address += view->firstLayer * unit->levels[i].slice;
}

static CUresult use_view(const CUDA_RESOURCE_VIEW_DESC *view, struct texture *texture)
{
    const struct array *array = texture->array;
    struct sg_texture *unit = &texture->unit;
    CUarray_format format;
    unsigned channels;

    if (!view)
        return CUDA_SUCCESS;
    CUresult result = array ? cuda_array_check_view(&array->descriptor, array->level_count, view)
                            : CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    texture->view = *view;
    texture->has_view = true;
    view_levels(view, unit);
    view_layers(view, unit);
    cuda_view_format(view, &array->descriptor, &format, &channels);
    array_format(format, channels, &unit->format);
    return CUDA_SUCCESS;
}

/* ---- descriptions ---- */

static bool is_filter(CUfilter_mode mode)
{
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

static void use_flags(unsigned flags, struct sg_texture *unit)
{
    unit->normalized = flags & CU_TRSF_NORMALIZED_COORDINATES;
    unit->as_float = !(flags & CU_TRSF_READ_AS_INTEGER) && unit->format.kind != SG_CHANNEL_FLOAT &&
                     unit->format.size < 4;
    unit->srgb = flags & CU_TRSF_SRGB && unit->format.size == 1;
    unit->seamless = flags & CU_TRSF_SEAMLESS_CUBEMAP;
}

static CUresult use_description(const CUDA_TEXTURE_DESC *description, struct texture *texture)
{
    struct sg_texture *unit = &texture->unit;

    if (description->flags & ~(unsigned)KNOWN_FLAGS)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_filter(description->filterMode) || !is_filter(description->mipmapFilterMode))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < 3; i++) {
        if ((unsigned)description->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        unit->address[i] = (uint8_t)description->addressMode[i];
    }
    texture->description = *description;
    use_flags(description->flags, unit);
    unit->filter_linear = description->filterMode == CU_TR_FILTER_MODE_LINEAR;
    unit->mip_linear = description->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    unit->bias = description->mipmapLevelBias;
    unit->least_level = description->minMipmapLevelClamp;
    unit->greatest_level = description->maxMipmapLevelClamp;
    memcpy(unit->border, description->borderColor, sizeof(unit->border));
    return CUDA_SUCCESS;
}

/* ---- calls ---- */

CUresult texture_create_locked(struct context *context, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *description,
                               const CUDA_RESOURCE_VIEW_DESC *view, struct texture **ret_texture)
{
    struct texture *texture = calloc(1, sizeof(*texture));
    CUresult result;

    if (!texture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = texture_use_resource_locked(resource, texture);
    if (!result)
        result = use_view(view, texture);
    if (!result)
        result = use_description(description, texture);
    if (!result)
        result = texture_enter_locked(context, texture);
    if (result)
        free(texture);
    else
        *ret_texture = texture;
    return result;
}

CUresult soft_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                                const CUDA_TEXTURE_DESC *pTexDesc,
                                const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct context *context;
    struct texture *texture;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = texture_create_locked(context, pResDesc, pTexDesc, pResViewDesc, &texture);
    if (!result)
        *pTexObject = texture->number;
    return result;
}

CUresult soft_cuTexObjectDestroy(CUtexObject texObject)
{
    SOFT_LOCKED;

    return texture_destroy_locked(texObject, false);
}

CUresult soft_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    SOFT_LOCKED;
    const struct texture *texture = texture_find_locked(texObject, false);

    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = texture->resource;
    return CUDA_SUCCESS;
}

CUresult soft_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    SOFT_LOCKED;
    const struct texture *texture = texture_find_locked(texObject, false);

    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    *pTexDesc = texture->description;
    return CUDA_SUCCESS;
}

CUresult soft_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
                                             CUtexObject texObject)
{
    SOFT_LOCKED;
    const struct texture *texture = texture_find_locked(texObject, false);

    if (!texture || !texture->has_view)
        return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = texture->view;
    return CUDA_SUCCESS;
}
