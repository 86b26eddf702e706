/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects. Programs pass the driver's own number to their kernels, so the
 * server has to return it; the descriptions are kept here.
 */
#include "client_texture.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_stream.h"
#include "map.h"
#include "stream_wait.h"
#include "wire_calls.h"

/* The driver may give a texture and a surface the same number. */
static struct {
    struct map textures, surfaces; /* by the driver's value; under client->lock */
} objects[ATTACH_DEVICES_MAX];

void texture_init(void)
{
    memset(objects, 0, sizeof(objects));
}

static struct map *objects_of(const struct device *device, bool is_surface)
{
    return is_surface ? &objects[device->ordinal].surfaces : &objects[device->ordinal].textures;
}

static void send_destroy(uint64_t handle)
{
    const struct wire_cuTexObjectDestroy in = {.texture = handle};

    channel_lock(&client->channel);
    wire_cuTexObjectDestroy(&client->channel, &in);
    channel_unlock(&client->channel);
}

static bool enter_object(struct texture *texture)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return map_put(objects_of(texture->context->device, texture->is_surface), texture->object,
                   texture) == 0;
}

static CUresult publish_texture(struct texture *texture,
                                CUresult (*make)(const struct texture *texture,
                                                 uint64_t *ret_object))
{
    CUresult result;

    texture->handle = handles_add(&client->handles, WIRE_TEXTURE, texture);
    if (!texture->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = make(texture, &texture->object);
    if (result == CUDA_SUCCESS && enter_object(texture))
        return CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        send_destroy(texture->handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    handles_remove(&client->handles, WIRE_TEXTURE, texture->handle);
    return result;
}

CUresult texture_create(const struct texture *like,
                        CUresult (*make)(const struct texture *texture, uint64_t *ret_object),
                        uint64_t *ret_object)
{
    struct texture *texture = malloc(sizeof(*texture));
    CUresult result;

    if (!texture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *texture = *like;
    result = publish_texture(texture, make);
    if (result == CUDA_SUCCESS)
        *ret_object = texture->object;
    else
        free(texture);
    return result;
}

static void destroy_texture(struct texture *texture)
{
    send_destroy(texture->handle);
    handles_remove(&client->handles, WIRE_TEXTURE, texture->handle);
    free(texture);
}

static struct texture *take_out(struct device *device, uint64_t object, bool is_surface)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return map_remove(objects_of(device, is_surface), object);
}

CUresult texture_destroy(uint64_t object, bool is_surface)
{
    struct context *context;
    struct texture *texture;
    CUresult result = context_enter(&context);

    if (result == CUDA_SUCCESS)
        result = stream_drain_device(context->device);
    if (result != CUDA_SUCCESS)
        return result;
    texture = take_out(context->device, object, is_surface);
    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    destroy_texture(texture);
    return client_sync_error();
}

CUresult texture_describe(uint64_t object, bool is_surface, struct texture *ret_texture)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct texture *texture = map_get(objects_of(context->device, is_surface), object);
    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_texture = *texture;
    return CUDA_SUCCESS;
}

static struct texture *take_any(struct context *context, bool is_surface)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct map *made = objects_of(context->device, is_surface);
    const struct map_entry *entry;
    size_t cursor = 0;

    while ((entry = map_next(made, &cursor)) != NULL) {
        struct texture *texture = entry->value;
        if (texture->context == context)
            return map_remove(made, texture->object);
    }
    return NULL;
}

void texture_destroy_all(struct context *context)
{
    struct texture *texture;

    while ((texture = take_any(context, false)) != NULL)
        destroy_texture(texture);
    while ((texture = take_any(context, true)) != NULL)
        destroy_texture(texture);
}
