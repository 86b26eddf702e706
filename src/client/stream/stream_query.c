/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about streams, and stream attributes. */
#include <string.h>

#include "client_prototypes.h"
#include "client_stream.h"

CUresult client_cuStreamGetFlags(CUstream hStream, unsigned *flags)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result == CUDA_SUCCESS)
        *flags = stream->flags;
    return result;
}

CUresult client_cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result == CUDA_SUCCESS)
        *priority = stream->priority;
    return result;
}

CUresult client_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result == CUDA_SUCCESS)
        *streamId = stream->id;
    return result;
}

CUresult client_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (result == CUDA_SUCCESS)
        *device = stream->device->ordinal;
    return result;
}

/* Of a stream in a green context the primary one. */
static CUresult find_with_context(CUstream handle, struct stream **ret_stream,
                                  CUcontext *ret_context)
{
    struct context *context;
    CUresult result = stream_enter_context(handle, &context);

    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, handle, ret_stream);
    if (result != CUDA_SUCCESS)
        return result;
    *ret_context = (*ret_stream)->kind == STREAM_LEGACY && !(*ret_stream)->context->green
                       ? context->handle
                       : (*ret_stream)->context->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct stream *stream;
    CUresult result = pCtx ? find_with_context(hStream, &stream, pCtx) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    if (pGreenCtx)
        *pGreenCtx = stream->context->green;
    if (stream->context->green)
        *pCtx = stream->device->primary->handle;
    return CUDA_SUCCESS;
}

/* It knows no green contexts, so it tells what cuCtxFromGreenCtx makes of one. */
CUresult client_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct stream *stream;

    return find_with_context(hStream, &stream, pctx);
}

CUresult client_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    CUcontext unused;

    return client_cuStreamGetCtx_v2(hStream, &unused, phCtx);
}

/* Attributes are hints, and all but the priority are only kept. The priority is for kernel nodes
 * that the stream captures; the server's stream keeps the one that it was made with. */
CUresult client_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
                                     CUstreamAttrValue *value_out)
{
    struct stream *stream;
    CUresult result;

    if (!cuda_stream_attribute_exists(attr))
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = cuda_stream_attribute_get(&stream->attributes, attr, value_out);
    if (result == CUDA_SUCCESS && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value_out->priority = stream->priority;
    return result;
}

CUresult client_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                     const CUstreamAttrValue *value)
{
    struct stream *stream;
    CUresult result;

    if (!cuda_stream_attribute_exists(attr))
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_enter(hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = cuda_stream_attribute_set(&stream->attributes, attr, value);
    if (result == CUDA_SUCCESS && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = stream_clamp_priority(stream->device, value->priority);
    return result;
}

CUresult client_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    struct stream *to, *from;
    CUresult result = stream_enter(dst, &to);

    if (result == CUDA_SUCCESS)
        result = stream_enter(src, &from);
    if (result != CUDA_SUCCESS)
        return result;
    to->priority = from->priority;
    to->attributes = from->attributes;
    return CUDA_SUCCESS;
}
