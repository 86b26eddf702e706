/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls on texture and surface objects, which are made on arrays or on memory.
 */
#include "client_array.h"
#include "client_prototypes.h"
#include "client_texture.h"
#include "wire_calls.h"

static CUresult on_array(const struct texture *texture, const struct array *array,
                         uint64_t *ret_object)
{
    struct wire_fnArrayTexture in = {
        .texture = texture->handle,
        .description = &texture->words,
        .description_size = texture->has_view ? sizeof(texture->words) : sizeof(CUDA_TEXTURE_DESC),
    };
    struct wire_fnArrayTexture_reply out;
    CUresult result;

    if (!array || array->context->device != texture->context->device)
        return CUDA_ERROR_INVALID_HANDLE;
    in.array = array->handle;
    result = wire_fnArrayTexture(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *ret_object = out.object;
    return result;
}

static CUresult send_memory(const struct texture *texture, struct wire_fnMemoryTexture in,
                            uint64_t *ret_object)
{
    struct wire_fnMemoryTexture_reply out;
    CUresult result;

    if (texture->has_view || !cuda_texel_size(in.format, in.channels))
        return CUDA_ERROR_INVALID_VALUE;
    in.texture = texture->handle;
    in.device = texture->context->device->index;
    in.description = &texture->words.texture;
    in.description_size = sizeof(texture->words.texture);
    result = wire_fnMemoryTexture(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *ret_object = out.object;
    return result;
}

static CUresult on_linear(const struct texture *texture, uint64_t *ret_object)
{
    const CUDA_RESOURCE_DESC *r = &texture->resource;
    const struct wire_fnMemoryTexture in = {
        .address = r->res.linear.devPtr,
        .format = r->res.linear.format,
        .channels = r->res.linear.numChannels,
        .width = r->res.linear.sizeInBytes,
    };

    return send_memory(texture, in, ret_object);
}

static CUresult on_rows(const struct texture *texture, uint64_t *ret_object)
{
    const CUDA_RESOURCE_DESC *r = &texture->resource;
    const struct wire_fnMemoryTexture in = {
        .address = r->res.pitch2D.devPtr,
        .format = r->res.pitch2D.format,
        .channels = r->res.pitch2D.numChannels,
        .width = r->res.pitch2D.width,
        .height = r->res.pitch2D.height,
        .pitch = r->res.pitch2D.pitchInBytes,
    };

    return in.height ? send_memory(texture, in, ret_object) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make_texture(const struct texture *texture, uint64_t *ret_object)
{
    const CUDA_RESOURCE_DESC *r = &texture->resource;

    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return on_array(texture, array_lookup(r->res.array.hArray), ret_object);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return on_array(texture, array_lookup_mipmap(r->res.mipmap.hMipmappedArray), ret_object);
    case CU_RESOURCE_TYPE_LINEAR:
        return on_linear(texture, ret_object);
    case CU_RESOURCE_TYPE_PITCH2D:
        return on_rows(texture, ret_object);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult client_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                                  const CUDA_TEXTURE_DESC *pTexDesc,
                                  const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct texture like = {.resource = *pResDesc, .words.texture = *pTexDesc};
    uint64_t object;
    CUresult result = context_enter(&like.context);

    if (result != CUDA_SUCCESS)
        return result;
    if (pResViewDesc) {
        like.words.view = *pResViewDesc;
        like.has_view = true;
    }
    result = texture_create(&like, make_texture, &object);
    if (result == CUDA_SUCCESS)
        *pTexObject = object;
    return result;
}

CUresult client_cuTexObjectDestroy(CUtexObject texObject)
{
    return texture_destroy(texObject, false);
}

CUresult client_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    struct texture texture;
    CUresult result = texture_describe(texObject, false, &texture);

    if (result == CUDA_SUCCESS)
        *pResDesc = texture.resource;
    return result;
}

CUresult client_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    struct texture texture;
    CUresult result = texture_describe(texObject, false, &texture);

    if (result == CUDA_SUCCESS)
        *pTexDesc = texture.words.texture;
    return result;
}

CUresult client_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
                                               CUtexObject texObject)
{
    struct texture texture;
    CUresult result = texture_describe(texObject, false, &texture);

    if (result == CUDA_SUCCESS && !texture.has_view)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pResViewDesc = texture.words.view;
    return result;
}

/* ---- surfaces ---- */

static CUresult make_surface(const struct texture *surface, uint64_t *ret_object)
{
    const struct array *array = array_lookup(surface->resource.res.array.hArray);
    struct wire_fnArraySurface in = {.surface = surface->handle};
    struct wire_fnArraySurface_reply out;
    CUresult result;

    if (!array || array->context->device != surface->context->device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!(array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        return CUDA_ERROR_INVALID_VALUE;
    in.array = array->handle;
    result = wire_fnArraySurface(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *ret_object = out.object;
    return result;
}

CUresult client_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    struct texture like = {.resource = *pResDesc, .is_surface = true};
    uint64_t object;
    CUresult result = context_enter(&like.context);

    if (result != CUDA_SUCCESS)
        return result;
    if (pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    result = texture_create(&like, make_surface, &object);
    if (result == CUDA_SUCCESS)
        *pSurfObject = object;
    return result;
}

CUresult client_cuSurfObjectDestroy(CUsurfObject surfObject)
{
    return texture_destroy(surfObject, true);
}

CUresult client_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    struct texture surface;
    CUresult result = texture_describe(surfObject, true, &surface);

    if (result == CUDA_SUCCESS)
        *pResDesc = surface.resource;
    return result;
}
