/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of streams. Only the priority means anything here; the others are hints for hardware,
 * and are accepted without effect.
 */
#include <string.h>

#include "soft_context.h"
#include "soft_stream.h"

static bool is_stream_attribute(CUstreamAttrID attribute)
{
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return true;
    default:
        return false;
    }
}

CUresult soft_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    struct stream *stream;

    if (!value || !is_stream_attribute(attr))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (result)
        return result;
    memset(value, 0, sizeof(*value));
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = stream->priority;
    if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        value->syncPolicy = CU_SYNC_POLICY_AUTO;
    return CUDA_SUCCESS;
}

CUresult soft_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                   const CUstreamAttrValue *value)
{
    struct stream *stream;

    if (!value || !is_stream_attribute(attr))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (!result && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = value->priority;
    return result;
}

CUresult soft_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    struct stream *to, *from;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(dst, &to);

    if (!result)
        result = stream_work_locked(src, &from);
    if (!result)
        to->priority = from->priority;
    return result;
}
