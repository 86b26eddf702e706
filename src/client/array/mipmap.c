/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays with mipmaps. A level is an array of its own, which the server is asked for once.
 */
#include "cleanup.h"
#include "client_array.h"
#include "client_capture.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "stream_wait.h"
#include "wire_calls.h"

static CUresult send_create(const struct array *array)
{
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    const struct wire_cuMipmappedArrayCreate in = {
        .hArray = array->handle,
        .device = array->context->device->index,
        .width = d->Width,
        .height = d->Height,
        .depth = d->Depth,
        .format = d->Format,
        .channels = d->NumChannels,
        .flags = d->Flags,
        .levels = array->levels,
    };

    return wire_cuMipmappedArrayCreate(&client->channel, &in);
}

CUresult client_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                       const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                       unsigned int numMipmapLevels)
{
    struct array like = {.descriptor = *pMipmappedArrayDesc};
    unsigned most;
    uint64_t handle;
    CUresult result = context_enter_unsafe(&like.context);

    if (result == CUDA_SUCCESS)
        result = array_check(pMipmappedArrayDesc);
    if (result != CUDA_SUCCESS)
        return result;
    most = cuda_array_most_levels(pMipmappedArrayDesc);
    like.levels = numMipmapLevels > most ? most : numMipmapLevels ? numMipmapLevels : 1;
    result = array_create(&like, send_create, &handle);
    if (result == CUDA_SUCCESS)
        *pHandle = (CUmipmappedArray)handle;
    return result;
}

/* ---- levels ---- */

static CUresult send_level(const struct array *level)
{
    const struct wire_cuMipmappedArrayGetLevel in = {
        .level = level->handle,
        .hMipmappedArray = level->whole,
        .number = level->number,
    };

    return wire_cuMipmappedArrayGetLevel(&client->channel, &in);
}

static uint64_t known_level(const struct array *array, unsigned level)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return array->level_handles[level];
}

/* Another thread may have entered a level first: then that one is used. */
static uint64_t enter_level(struct array *array, unsigned level, uint64_t handle)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    if (!array->level_handles[level])
        array->level_handles[level] = handle;
    return array->level_handles[level];
}

static CUresult make_level(struct array *array, unsigned level, uint64_t *ret_handle)
{
    const struct array like = {
        .context = array->context,
        .descriptor = cuda_array_level(&array->descriptor, level),
        .whole = array->handle,
        .number = level,
    };
    uint64_t handle, entered;
    CUresult result = array_create(&like, send_level, &handle);

    if (result != CUDA_SUCCESS)
        return result;
    entered = enter_level(array, level, handle);
    if (entered != handle)
        array_destroy(handle);
    *ret_handle = entered;
    return CUDA_SUCCESS;
}

CUresult client_cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                         unsigned int level)
{
    struct array *array = array_lookup_mipmap(hMipmappedArray);
    CUresult result = client_error();
    uint64_t handle;

    if (result != CUDA_SUCCESS)
        return result;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (level >= array->levels)
        return CUDA_ERROR_INVALID_VALUE;
    handle = known_level(array, level);
    if (!handle)
        result = make_level(array, level, &handle);
    if (result == CUDA_SUCCESS)
        *pLevelArray = (CUarray)handle;
    return result;
}

CUresult client_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    const struct array *array = array_lookup_mipmap(hMipmappedArray);
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    result = stream_drain_device(array->context->device);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < array->levels; i++) {
        if (array->level_handles[i])
            array_destroy(array->level_handles[i]);
    }
    return array_destroy(array->handle) ? client_sync_error() : CUDA_ERROR_INVALID_HANDLE;
}
