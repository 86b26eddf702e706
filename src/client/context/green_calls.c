/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on parts of devices and on green contexts. */
#include <stdlib.h>

#include "client_prototypes.h"
#include "client_stream.h"
#include "green_context.h"
#include "stream_group.h"
#include "stream_join.h"

/* ---- resources ---- */

CUresult client_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                       CUdevResourceType type)
{
    const struct device *found = device_lookup(device);
    struct sm_set set;
    CUresult result;

    if (!found)
        return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    result = green_device_set(found, &set);
    if (result == CUDA_SUCCESS)
        sm_set_to_resource(&set, resource);
    return result;
}

CUresult client_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                         CUdevResourceType type)
{
    const struct green *green = green_lookup(hCtx);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    sm_set_to_resource(&green->set, resource);
    return CUDA_SUCCESS;
}

CUresult client_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct context *context;
    CUresult result = hCtx ? context_resolve_streams(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;

    if (result != CUDA_SUCCESS)
        return result;
    if (context->green)
        return client_cuGreenCtxGetDevResource(context->green, resource, type);
    return client_cuDeviceGetDevResource(context->device->ordinal, resource, type);
}

CUresult client_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *nbGroups,
                                            const CUdevResource *input, CUdevResource *remaining,
                                            unsigned useFlags, unsigned minCount)
{
    return sm_set_split(result, nbGroups, input, remaining, useFlags, minCount);
}

/* CUDA has no call that ends one; they live as long as the process. */
CUresult client_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                          unsigned nbResources)
{
    struct sm_set set, *kept;
    uint64_t handle = 0;
    CUresult result;

    if (!resources || nbResources == 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = sm_set_join(resources, nbResources, &set);
    if (result != CUDA_SUCCESS)
        return result;
    kept = malloc(sizeof(*kept));
    if (kept) {
        *kept = set;
        handle = handles_add(&client->handles, CLIENT_RESOURCE, kept);
    }
    if (!handle) {
        free(kept);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phDesc = (CUdevResourceDesc)handle;
    return CUDA_SUCCESS;
}

/* ---- green contexts ---- */

CUresult client_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                                 unsigned flags)
{
    const struct sm_set *set = handles_get(&client->handles, CLIENT_RESOURCE, (uint64_t)desc);
    struct device *device = device_lookup(dev);
    struct green *green;
    CUresult result;

    if (flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!set || set->device != (uint32_t)device->ordinal)
        return CUDA_ERROR_INVALID_VALUE;
    result = green_create(device, set, &green);
    if (result == CUDA_SUCCESS)
        *phCtx = green->handle;
    return result;
}

CUresult client_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    return green_destroy(hCtx);
}

CUresult client_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    const struct green *green = green_lookup(hCtx);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *pContext = green->context->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    const struct green *green = green_lookup(greenCtx);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *greenCtxId = green->context->id;
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

CUresult client_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned flags,
                                       int priority)
{
    const struct green *green = green_lookup(greenCtx);
    struct stream *stream;
    CUresult result = client_error();

    if (flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    stream = stream_create(green->context, STREAM_NONBLOCKING,
                           stream_clamp_priority(green->context->device, priority));
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = (CUstream)stream->handle;
    return CUDA_SUCCESS;
}

static CUresult green_enter(CUgreenCtx handle, struct context **ret_context)
{
    const struct green *green = green_lookup(handle);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = green->context;
    return client_error();
}

CUresult client_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct context *context;
    CUresult result = green_enter(hCtx, &context);

    return result == CUDA_SUCCESS ? stream_record_context(context, hEvent) : result;
}

CUresult client_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct context *context;
    CUresult result = green_enter(hCtx, &context);

    return result == CUDA_SUCCESS ? stream_hold_context(context, hEvent) : result;
}

CUresult client_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *context;
    CUresult result = client_error();

    if (result == CUDA_SUCCESS)
        result = hCtx ? context_resolve_streams(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? stream_record_context(context, hEvent) : result;
}

CUresult client_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *context;
    CUresult result = client_error();

    if (result == CUDA_SUCCESS)
        result = hCtx ? context_resolve_streams(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? stream_hold_context(context, hEvent) : result;
}
