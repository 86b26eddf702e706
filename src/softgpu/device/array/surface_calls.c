/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surface objects: arrays whose bytes kernels read and write.
 */
#include <stdlib.h>

#include "soft_context.h"
#include "soft_texture.h"

CUresult surface_create_locked(struct context *context, const CUDA_RESOURCE_DESC *resource,
                               struct texture **ret_surface)
{
    struct texture *surface;
    CUresult result;

    if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    surface = calloc(1, sizeof(*surface));
    if (!surface)
        return CUDA_ERROR_OUT_OF_MEMORY;
    surface->unit.is_surface = true;
    result = texture_use_resource_locked(resource, surface);
    if (!result && !(surface->array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = texture_enter_locked(context, surface);
    if (result)
        free(surface);
    else
        *ret_surface = surface;
    return result;
}

CUresult soft_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    struct context *context;
    struct texture *surface;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = surface_create_locked(context, pResDesc, &surface);
    if (!result)
        *pSurfObject = surface->number;
    return result;
}

CUresult soft_cuSurfObjectDestroy(CUsurfObject surfObject)
{
    SOFT_LOCKED;

    return texture_destroy_locked(surfObject, true);
}

CUresult soft_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    SOFT_LOCKED;
    const struct texture *surface = texture_find_locked(surfObject, true);

    if (!surface)
        return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = surface->resource;
    return CUDA_SUCCESS;
}
