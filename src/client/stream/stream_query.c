/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about streams, and stream attributes. */
#include <string.h>

#include "client_prototypes.h"
#include "client_stream.h"

CUresult client_cuStreamGetFlags(CUstream hStream, unsigned *flags)
{
    struct stream *stream;
    CUresult result;

    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *flags = stream->flags;
    return result;
}

CUresult client_cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct stream *stream;
    CUresult result;

    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *priority = stream->priority;
    return result;
}

CUresult client_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct stream *stream;
    CUresult result;

    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *streamId = stream->id;
    return result;
}

CUresult client_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct stream *stream;
    CUresult result;

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *device = stream->device->ordinal;
    return result;
}

CUresult client_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct context *context;
    struct stream *stream;
    CUresult result = context_enter(&context);

    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, hStream, &stream);
    if (result == CUDA_SUCCESS)
        *pctx = stream->kind == STREAM_LEGACY ? context->handle : stream->context->handle;
    return result;
}

CUresult client_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    if (pGreenCtx)
        *pGreenCtx = NULL;
    return client_cuStreamGetCtx(hStream, pCtx);
}

/* Attributes are hints about caches and domains; every stream has the defaults. */
CUresult client_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
                                     CUstreamAttrValue *value_out)
{
    struct stream *stream;
    CUresult result;

    if (!value_out)
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    memset(value_out, 0, sizeof(*value_out));
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value_out->priority = stream->priority;
    else if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        value_out->syncPolicy = CU_SYNC_POLICY_AUTO;
    return CUDA_SUCCESS;
}

CUresult client_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                     const CUstreamAttrValue *value)
{
    struct stream *stream;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_enter(hStream, &stream);
}

CUresult client_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    struct stream *stream;
    CUresult result = stream_enter(dst, &stream);

    return result != CUDA_SUCCESS ? result : stream_enter(src, &stream);
}
