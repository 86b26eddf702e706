/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: minted and described here, made by the server. Nobody but the GPU knows how one lies in
 * memory, so it has no address here.
 */
#include "client_array.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "cuda_array.h"
#include "wire_calls.h"

struct array *array_lookup(CUarray handle)
{
    return handles_get(&client->handles, WIRE_ARRAY, (uint64_t)handle);
}

/* What is wrong for any device; the driver knows the rest. */
static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (d->Width == 0 || d->Width > CUDA_ARRAY_EXTENT_MAX || d->Height > CUDA_ARRAY_EXTENT_MAX ||
        d->Depth > CUDA_ARRAY_EXTENT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cuda_texel_size(d->Format, d->NumChannels) ||
        d->Flags & ~(unsigned)CUDA_ARRAY_FLAGS_CARRIED)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult send_create(const struct array *array)
{
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    const struct wire_cuArray3DCreate_v2 in = {
        .hArray = array->handle,
        .device = array->context->device->index,
        .width = d->Width,
        .height = d->Height,
        .depth = d->Depth,
        .format = d->Format,
        .channels = d->NumChannels,
        .flags = d->Flags,
    };

    return wire_cuArray3DCreate_v2(&client->channel, &in);
}

static CUresult array_create(struct array *array)
{
    CUresult result;

    array->handle = handles_add(&client->handles, WIRE_ARRAY, array);
    if (!array->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = send_create(array);
    if (result != CUDA_SUCCESS) {
        handles_remove(&client->handles, WIRE_ARRAY, array->handle);
        return result;
    }
    pthread_mutex_lock(&client->lock);
    list_append(&array->context->arrays, &array->link);
    pthread_mutex_unlock(&client->lock);
    return CUDA_SUCCESS;
}

CUresult client_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct context *context;
    struct array *array;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    result = check(pAllocateArray);
    if (result != CUDA_SUCCESS)
        return result;
    array = calloc(1, sizeof(*array));
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->context = context;
    array->descriptor = *pAllocateArray;
    result = array_create(array);
    if (result == CUDA_SUCCESS)
        *pHandle = (CUarray)array->handle;
    else
        free(array);
    return result;
}

CUresult client_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = pAllocateArray->Width,
        .Height = pAllocateArray->Height,
        .Format = pAllocateArray->Format,
        .NumChannels = pAllocateArray->NumChannels,
    };

    return client_cuArray3DCreate_v2(pHandle, &descriptor);
}

CUresult client_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    const struct array *array = array_lookup(hArray);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult client_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    const struct array *array = array_lookup(hArray);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){
        .Width = array->descriptor.Width,
        .Height = array->descriptor.Height,
        .Format = array->descriptor.Format,
        .NumChannels = array->descriptor.NumChannels,
    };
    return CUDA_SUCCESS;
}

static bool array_destroy(CUarray handle)
{
    const struct wire_cuArrayDestroy in = {.hArray = (uint64_t)handle};
    struct array *array;

    pthread_mutex_lock(&client->lock);
    array = handles_remove(&client->handles, WIRE_ARRAY, (uint64_t)handle);
    if (array)
        list_remove(&array->link);
    pthread_mutex_unlock(&client->lock);
    if (!array)
        return false;
    channel_lock(&client->channel);
    wire_cuArrayDestroy(&client->channel, &in);
    channel_unlock(&client->channel);
    free(array);
    return true;
}

/* As for memory: waits for this client's work alone. */
CUresult client_cuArrayDestroy(CUarray hArray)
{
    const struct array *array = array_lookup(hArray);
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    result = stream_drain_device(array->context->device);
    if (result != CUDA_SUCCESS)
        return result;
    return array_destroy(hArray) ? client_sync_error() : CUDA_ERROR_INVALID_HANDLE;
}

static CUarray any_array(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct array *array = list_first(&context->arrays, struct array, link);

    return array ? (CUarray)array->handle : NULL;
}

void array_destroy_all(struct context *context)
{
    CUarray handle;

    while ((handle = any_array(context)) != NULL)
        array_destroy(handle);
}
