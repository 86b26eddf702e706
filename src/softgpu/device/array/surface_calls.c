/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surface objects: arrays whose bytes kernels read and write.
 */
#include <stdlib.h>

#include "soft_context.h"
#include "soft_texture.h"

CUresult soft_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (result)
        return result;
    if (pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    struct texture *surface = calloc(1, sizeof(*surface));
    if (!surface)
        return CUDA_ERROR_OUT_OF_MEMORY;
    surface->unit.is_surface = true;
    result = texture_use_resource_locked(pResDesc, surface);
    if (!result && !(surface->array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = texture_enter_locked(context, surface);
    if (result)
        free(surface);
    else
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
