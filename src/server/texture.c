/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture objects: the driver's, made from descriptions in which nothing is the client's word
 * alone.
 */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "copy.h"
#include "cuda_array.h"
#include "memory.h"
#include "server_dispatch.h"

struct texture {
    CUtexObject driver;
    const struct device *device;
    struct array *array; /* NULL on memory */
};

static CUresult check_call(struct session *session, const void *description, uint32_t size,
                           CUDA_TEXTURE_DESC *ret_description)
{
    if (!driver.cuTexObjectCreate || !driver.cuTexObjectDestroy)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (size != sizeof(*ret_description)) {
        session_complain(session, "a texture description of %u bytes", size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (session->textures >= SESSION_TEXTURES_MAX) {
        session_complain(session, "more than %u texture objects", SESSION_TEXTURES_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(ret_description, description, size);
    memset(ret_description->reserved, 0, sizeof(ret_description->reserved));
    return CUDA_SUCCESS;
}

/* `like` says what the object is on. */
static CUresult make(struct session *session, uint64_t handle, const struct texture *like,
                     const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *description,
                     uint64_t *ret_object)
{
    CUresult result = session_enter(session, like->device);
    struct texture *texture = malloc(sizeof(*texture));

    if (!texture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *texture = *like;
    if (result == CUDA_SUCCESS)
        result = driver.cuTexObjectCreate(&texture->driver, resource, description, NULL);
    if (result != CUDA_SUCCESS) {
        free(texture);
        return result;
    }
    if (texture->array)
        texture->array->references++;
    session->textures++;
    result = session_put(session, WIRE_TEXTURE, handle, texture);
    if (result != CUDA_SUCCESS)
        texture_destroy(session, texture);
    else
        *ret_object = texture->driver;
    return result;
}

CUresult serve_fnArrayTexture(struct session *session, const struct wire_fnArrayTexture *in,
                              struct array *array, struct wire_fnArrayTexture_reply *ret_out)
{
    const struct texture like = {.device = array->device, .array = array};
    const CUDA_RESOURCE_DESC resource = {
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = array->driver,
    };
    CUDA_TEXTURE_DESC description;
    CUresult result = check_call(session, in->description, in->description_size, &description);

    if (result != CUDA_SUCCESS)
        return result;
    return make(session, in->texture, &like, &resource, &description, &ret_out->object);
}

static bool check_memory(struct session *session, const struct wire_fnMemoryTexture *in)
{
    uint64_t texel = cuda_texel_size((CUarray_format)in->format, in->channels), row, span;

    if (!in->height)
        texel = texel ? 1 : 0;
    if (texel && in->width && !__builtin_mul_overflow(in->width, texel, &row) &&
        copy_span(in->pitch, 1, row, in->height ? in->height : 1, 1, &span) &&
        (!in->height || in->pitch >= row) && memory_covers(session, in->address, span))
        return true;
    session_complain(session, "fnMemoryTexture: the memory at %#llx is not all the client's",
                     (unsigned long long)in->address);
    return false;
}

static CUDA_RESOURCE_DESC describe_memory(const struct wire_fnMemoryTexture *in)
{
    if (!in->height)
        return (CUDA_RESOURCE_DESC){
            .resType = CU_RESOURCE_TYPE_LINEAR,
            .res.linear = {in->address, (CUarray_format)in->format, in->channels, in->width},
        };
    return (CUDA_RESOURCE_DESC){
        .resType = CU_RESOURCE_TYPE_PITCH2D,
        .res.pitch2D = {in->address, (CUarray_format)in->format, in->channels, in->width,
                        in->height, in->pitch},
    };
}

CUresult serve_fnMemoryTexture(struct session *session, const struct wire_fnMemoryTexture *in,
                               struct wire_fnMemoryTexture_reply *ret_out)
{
    const struct texture like = {.device =
                                     session_find_device(session, "fnMemoryTexture", in->device)};
    const CUDA_RESOURCE_DESC resource = describe_memory(in);
    CUDA_TEXTURE_DESC description;

    if (!like.device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!check_memory(session, in))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_call(session, in->description, in->description_size, &description);
    if (result != CUDA_SUCCESS)
        return result;
    return make(session, in->texture, &like, &resource, &description, &ret_out->object);
}

void texture_destroy(struct session *session, struct texture *texture)
{
    if (session_enter(session, texture->device) == CUDA_SUCCESS)
        driver.cuTexObjectDestroy(texture->driver);
    if (texture->array)
        array_unref(session, texture->array);
    session->textures--;
    free(texture);
}

CUresult serve_cuTexObjectDestroy(struct session *session, const struct wire_cuTexObjectDestroy *in,
                                  struct texture *texture)
{
    session_remove(session, WIRE_TEXTURE, in->texture);
    texture_destroy(session, texture);
    return CUDA_SUCCESS;
}
