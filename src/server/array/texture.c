/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's texture and surface objects, made from checked descriptions. */
#include "array_state.h"

#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "cuda_array.h"
#include "memory.h"
#include "server_dispatch.h"

struct texture {
    uint64_t driver;
    bool is_surface;
    const struct device *device;
    struct array *array; /* NULL: on memory */
};

static CUresult check_object_count(struct session *session)
{
    if (session->arrays->textures < SESSION_TEXTURES_MAX)
        return CUDA_SUCCESS;
    session_log_error(session, "more than %u texture and surface objects", SESSION_TEXTURES_MAX);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The message has the words of a texture description, and perhaps those of a view. */
static CUresult read_words(struct session *session, const void *description, uint32_t size,
                           struct cuda_texture_words *ret_words)
{
    if (!driver.cuTexObjectCreate || !driver.cuTexObjectDestroy)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (size != sizeof(*ret_words) && size != sizeof(ret_words->texture)) {
        session_log_error(session, "a texture description has %u bytes, which is not its size",
                          size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(ret_words, description, size);
    memset(ret_words->texture.reserved, 0, sizeof(ret_words->texture.reserved));
    memset(ret_words->view.reserved, 0, sizeof(ret_words->view.reserved));
    return check_object_count(session);
}

static void destroy_driver(const struct texture *texture)
{
    if (texture->is_surface)
        driver.cuSurfObjectDestroy(texture->driver);
    else
        driver.cuTexObjectDestroy(texture->driver);
}

/* Takes over the driver's object of `like`. */
static CUresult add_texture(struct session *session, uint64_t handle, const struct texture *like,
                            uint64_t *ret_object)
{
    struct texture *texture = malloc(sizeof(*texture));
    CUresult result;

    if (!texture) {
        destroy_driver(like);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *texture = *like;
    if (texture->array)
        texture->array->references++;
    session->arrays->textures++;
    result = session_put(session, WIRE_TEXTURE, handle, texture);
    if (result != CUDA_SUCCESS)
        texture_end(session, texture);
    else
        *ret_object = texture->driver;
    return result;
}

static CUresult create_texture(struct session *session, uint64_t handle, struct texture *like,
                               const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *description,
                               const CUDA_RESOURCE_VIEW_DESC *view, uint64_t *ret_object)
{
    CUtexObject object;
    CUresult result = session_enter(session, like->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuTexObjectCreate(&object, resource, description, view);
    if (result != CUDA_SUCCESS)
        return result;
    like->driver = object;
    return add_texture(session, handle, like, ret_object);
}

/* ---- on arrays ---- */

CUDA_RESOURCE_DESC texture_describe_array(const struct array *array)
{
    if (array->mipmap)
        return (CUDA_RESOURCE_DESC){
            .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
            .res.mipmap.hMipmappedArray = array->mipmap,
        };
    return (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = array->driver,
    };
}

CUresult serve_fnArrayTexture(struct session *session, const struct wire_fnArrayTexture *in,
                              struct array *array, struct wire_fnArrayTexture_reply *ret_out)
{
    struct texture like = {.device = array->device, .array = array};
    const CUDA_RESOURCE_DESC resource = texture_describe_array(array);
    bool has_view = in->description_size == sizeof(struct cuda_texture_words);
    struct cuda_texture_words words = {0};
    CUresult result = read_words(session, in->description, in->description_size, &words);

    if (result == CUDA_SUCCESS && has_view)
        result = cuda_array_check_view(&array->descriptor, array->levels ? array->levels : 1,
                                       &words.view);
    if (result != CUDA_SUCCESS)
        return result;
    return create_texture(session, in->texture, &like, &resource, &words.texture,
                          has_view ? &words.view : NULL, &ret_out->object);
}

CUresult serve_fnArraySurface(struct session *session, const struct wire_fnArraySurface *in,
                              struct array *array, struct wire_fnArraySurface_reply *ret_out)
{
    struct texture like = {.is_surface = true, .device = array->device, .array = array};
    const CUDA_RESOURCE_DESC resource = texture_describe_array(array);
    CUresult result = check_object_count(session);
    CUsurfObject object;

    if (!driver.cuSurfObjectCreate || !driver.cuSurfObjectDestroy)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (array->mipmap || !(array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST)) {
        session_log_error(session, "cuSurfObjectCreate: the array was not created for surfaces");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        result = session_enter(session, array->device);
    if (result == CUDA_SUCCESS)
        result = driver.cuSurfObjectCreate(&object, &resource);
    if (result != CUDA_SUCCESS)
        return result;
    like.driver = object;
    return add_texture(session, in->surface, &like, &ret_out->object);
}

/* ---- on memory ---- */

static bool memory_is_own(struct session *session, const struct texture_memory *memory)
{
    uint64_t texel = cuda_texel_size((CUarray_format)memory->format, memory->channels), row, span;

    if (!memory->height)
        texel = texel ? 1 : 0;
    return texel && memory->width && !__builtin_mul_overflow(memory->width, texel, &row) &&
           copy_span(memory->pitch, 1, row, memory->height ? memory->height : 1, 1, &span) &&
           (!memory->height || memory->pitch >= row) &&
           memory_covers(session, memory->address, span);
}

CUresult texture_describe_memory(struct session *session, const char *call,
                                 const struct texture_memory *memory,
                                 CUDA_RESOURCE_DESC *ret_resource)
{
    CUarray_format format = (CUarray_format)memory->format;

    if (!memory_is_own(session, memory)) {
        session_log_error(session, "%s: the memory at %#llx is not all the client's", call,
                          (unsigned long long)memory->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory->height)
        *ret_resource = (CUDA_RESOURCE_DESC){
            .resType = CU_RESOURCE_TYPE_PITCH2D,
            .res.pitch2D = {memory->address, format, memory->channels, memory->width,
                            memory->height, memory->pitch},
        };
    else
        *ret_resource = (CUDA_RESOURCE_DESC){
            .resType = CU_RESOURCE_TYPE_LINEAR,
            .res.linear = {memory->address, format, memory->channels, memory->width},
        };
    return CUDA_SUCCESS;
}

CUresult serve_fnMemoryTexture(struct session *session, const struct wire_fnMemoryTexture *in,
                               struct wire_fnMemoryTexture_reply *ret_out)
{
    struct texture like = {.device = session_find_device(session, "fnMemoryTexture", in->device)};
    const struct texture_memory memory = {in->address, in->format, in->channels,
                                          in->width,   in->height, in->pitch};
    struct cuda_texture_words words = {0};
    CUDA_RESOURCE_DESC resource;

    if (!like.device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (in->description_size != sizeof(words.texture))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = texture_describe_memory(session, "fnMemoryTexture", &memory, &resource);
    if (result == CUDA_SUCCESS)
        result = read_words(session, in->description, in->description_size, &words);
    if (result != CUDA_SUCCESS)
        return result;
    return create_texture(session, in->texture, &like, &resource, &words.texture, NULL,
                          &ret_out->object);
}

void texture_end(struct session *session, struct texture *texture)
{
    if (session_enter(session, texture->device) == CUDA_SUCCESS)
        destroy_driver(texture);
    if (texture->array)
        array_unref(session, texture->array);
    session->arrays->textures--;
    free(texture);
}

CUresult serve_cuTexObjectDestroy(struct session *session, const struct wire_cuTexObjectDestroy *in,
                                  struct texture *texture)
{
    session_remove(session, WIRE_TEXTURE, in->texture);
    texture_end(session, texture);
    return CUDA_SUCCESS;
}
