/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: minted and described here, made by the server. Only the GPU knows how one lies in memory,
 * so it has no address here.
 */
#include "client_array.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "stream_wait.h"
#include "wire_calls.h"

static struct array *lookup(uint64_t handle)
{
    return handles_get(&client->handles, WIRE_ARRAY, handle);
}

struct array *array_lookup(CUarray handle)
{
    struct array *array = lookup((uint64_t)handle);

    return array && !array->levels ? array : NULL;
}

struct array *array_lookup_mipmap(CUmipmappedArray handle)
{
    struct array *array = lookup((uint64_t)handle);

    return array && array->levels ? array : NULL;
}

CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (!cuda_array_has_extent(d))
        return CUDA_ERROR_INVALID_VALUE;
    if (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cuda_texel_size(d->Format, d->NumChannels) ||
        d->Flags & ~(unsigned)CUDA_ARRAY_FLAGS_CARRIED)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult publish_array(struct array *array, CUresult (*send)(const struct array *array))
{
    CUresult result;

    array->handle = handles_add(&client->handles, WIRE_ARRAY, array);
    if (!array->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = send(array);
    if (result != CUDA_SUCCESS) {
        handles_remove(&client->handles, WIRE_ARRAY, array->handle);
        return result;
    }
    pthread_mutex_lock(&client->lock);
    list_append(&array->context->arrays, &array->link);
    pthread_mutex_unlock(&client->lock);
    return CUDA_SUCCESS;
}

CUresult array_create(const struct array *like, CUresult (*send)(const struct array *array),
                      uint64_t *ret_handle)
{
    struct array *array = malloc(sizeof(*array));
    CUresult result;

    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array = *like;
    result = publish_array(array, send);
    if (result == CUDA_SUCCESS)
        *ret_handle = array->handle;
    else
        free(array);
    return result;
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

CUresult client_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct array like = {.descriptor = *pAllocateArray};
    uint64_t handle;
    CUresult result = context_enter_unsafe(&like.context);

    if (result == CUDA_SUCCESS)
        result = array_check(pAllocateArray);
    if (result == CUDA_SUCCESS)
        result = array_create(&like, send_create, &handle);
    if (result == CUDA_SUCCESS)
        *pHandle = (CUarray)handle;
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

/* ---- questions ---- */

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

/* Planar and sparse arrays, and arrays with deferred mapping, are not supported: this is an
 * ordinary one. */
static CUresult array_error(const struct array *array)
{
    return array ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult client_cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    (void)pPlaneArray;
    (void)planeIdx;
    return array_error(array_lookup(hArray));
}

CUresult client_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                           CUarray array)
{
    (void)sparseProperties;
    return array_error(array_lookup(array));
}

CUresult client_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                             CUarray array, CUdevice device)
{
    (void)memoryRequirements;
    (void)device;
    return array_error(array_lookup(array));
}

CUresult client_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                                    CUmipmappedArray mipmap)
{
    (void)sparseProperties;
    return array_error(array_lookup_mipmap(mipmap));
}

CUresult
client_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                             CUmipmappedArray mipmap, CUdevice device)
{
    (void)memoryRequirements;
    (void)device;
    return array_error(array_lookup_mipmap(mipmap));
}

/* ---- ends ---- */

bool array_destroy(uint64_t handle)
{
    const struct wire_cuArrayDestroy in = {.hArray = handle};
    struct array *array;

    pthread_mutex_lock(&client->lock);
    array = handles_remove(&client->handles, WIRE_ARRAY, handle);
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

/* As cuMemFree, this waits only for this client's work. */
CUresult client_cuArrayDestroy(CUarray hArray)
{
    const struct array *array = array_lookup(hArray);
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!array || array->whole)
        return CUDA_ERROR_INVALID_HANDLE;
    result = stream_drain_device(array->context->device);
    if (result != CUDA_SUCCESS)
        return result;
    return array_destroy((uint64_t)hArray) ? client_sync_error() : CUDA_ERROR_INVALID_HANDLE;
}

static uint64_t any_array(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct array *array = list_first(&context->arrays, struct array, link);

    return array ? array->handle : 0;
}

void array_destroy_all(struct context *context)
{
    uint64_t handle;

    while ((handle = any_array(context)) != 0)
        array_destroy(handle);
}
