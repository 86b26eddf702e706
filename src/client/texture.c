/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture objects. What a program holds, and gives to its kernels, is the driver's own number, so
 * the server is asked for it; the descriptions are kept here.
 */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_array.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_array.h"
#include "wire_calls.h"

struct texture {
    uint64_t handle, object;
    struct context *context;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC description;
};

static CUresult on_array(const struct texture *texture, uint64_t *ret_object)
{
    const struct array *array = array_lookup(texture->resource.res.array.hArray);
    struct wire_fnArrayTexture in = {
        .texture = texture->handle,
        .description = &texture->description,
        .description_size = sizeof(texture->description),
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

    if (!cuda_texel_size(in.format, in.channels))
        return CUDA_ERROR_INVALID_VALUE;
    in.texture = texture->handle;
    in.device = texture->context->device->index;
    in.description = &texture->description;
    in.description_size = sizeof(texture->description);
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

static CUresult make_object(const struct texture *texture, uint64_t *ret_object)
{
    switch (texture->resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return on_array(texture, ret_object);
    case CU_RESOURCE_TYPE_LINEAR:
        return on_linear(texture, ret_object);
    case CU_RESOURCE_TYPE_PITCH2D:
        return on_rows(texture, ret_object);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static void send_destroy(uint64_t handle)
{
    const struct wire_cuTexObjectDestroy in = {.texture = handle};

    channel_lock(&client->channel);
    wire_cuTexObjectDestroy(&client->channel, &in);
    channel_unlock(&client->channel);
}

static bool enter(struct texture *texture)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return map_put(&texture->context->device->textures, texture->object, texture) == 0;
}

static CUresult texture_create(struct texture *texture)
{
    CUresult result;

    texture->handle = handles_add(&client->handles, WIRE_TEXTURE, texture);
    if (!texture->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = make_object(texture, &texture->object);
    if (result == CUDA_SUCCESS && enter(texture))
        return CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        send_destroy(texture->handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    handles_remove(&client->handles, WIRE_TEXTURE, texture->handle);
    return result;
}

CUresult client_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                                  const CUDA_TEXTURE_DESC *pTexDesc,
                                  const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct context *context;
    struct texture *texture;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (pResViewDesc)
        return CUDA_ERROR_NOT_SUPPORTED;
    texture = calloc(1, sizeof(*texture));
    if (!texture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    texture->context = context;
    texture->resource = *pResDesc;
    texture->description = *pTexDesc;
    result = texture_create(texture);
    if (result == CUDA_SUCCESS)
        *pTexObject = texture->object;
    else
        free(texture);
    return result;
}

static void texture_forget(struct texture *texture)
{
    send_destroy(texture->handle);
    handles_remove(&client->handles, WIRE_TEXTURE, texture->handle);
    free(texture);
}

static struct texture *take_out(struct device *device, CUtexObject object)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return map_remove(&device->textures, object);
}

/* A kernel that still reads the object would end everybody's work, so it is waited for. */
CUresult client_cuTexObjectDestroy(CUtexObject texObject)
{
    struct context *context;
    struct texture *texture;
    CUresult result = context_enter(&context);

    if (result == CUDA_SUCCESS)
        result = stream_drain_device(context->device);
    if (result != CUDA_SUCCESS)
        return result;
    texture = take_out(context->device, texObject);
    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    texture_forget(texture);
    return client_sync_error();
}

static CUresult describe(CUtexObject object, CUDA_RESOURCE_DESC *ret_resource,
                         CUDA_TEXTURE_DESC *ret_description)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct texture *texture = map_get(&context->device->textures, object);
    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    if (ret_resource)
        *ret_resource = texture->resource;
    if (ret_description)
        *ret_description = texture->description;
    return CUDA_SUCCESS;
}

CUresult client_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    return describe(texObject, pResDesc, NULL);
}

CUresult client_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    return describe(texObject, NULL, pTexDesc);
}

static struct texture *take_any(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct map *textures = &context->device->textures;
    const struct map_entry *entry;
    size_t cursor = 0;

    while ((entry = map_next(textures, &cursor)) != NULL) {
        struct texture *texture = entry->value;
        if (texture->context == context)
            return map_remove(textures, texture->object);
    }
    return NULL;
}

void texture_destroy_all(struct context *context)
{
    struct texture *texture;

    while ((texture = take_any(context)) != NULL)
        texture_forget(texture);
}
