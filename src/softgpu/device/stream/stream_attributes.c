/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of streams. Only the priority means anything here; the others are hints for hardware,
 * which are kept.
 */
#include "soft_context.h"
#include "soft_stream.h"

CUresult soft_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    struct stream *stream;

    if (!cuda_stream_attribute_exists(attr))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (!result)
        result = cuda_stream_attribute_get(&stream->attributes, attr, value);
    if (!result && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = stream->priority;
    return result;
}

CUresult soft_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                   const CUstreamAttrValue *value)
{
    struct stream *stream;

    if (!cuda_stream_attribute_exists(attr))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (!result)
        result = cuda_stream_attribute_set(&stream->attributes, attr, value);
    if (!result && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = stream_clamp_priority(value->priority);
    return result;
}

CUresult soft_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    struct stream *to, *from;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(dst, &to);

    if (!result)
        result = stream_work_locked(src, &from);
    if (result)
        return result;
    to->priority = from->priority;
    to->attributes = from->attributes;
    return CUDA_SUCCESS;
}
