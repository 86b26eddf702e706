/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls about streams.
 */
#include "device_sync.h"
#include "soft_context.h"
#include "soft_green.h"
#include "soft_stream.h"

CUresult soft_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct context *context;
    struct stream *stream;

    if (flags & ~CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (result)
        return result;
    device_block_take_locked(context);
    stream = stream_create_locked(context, flags, stream_clamp_priority(priority));
    if (!stream || !green_adopt_stream_locked(stream))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = (CUstream)stream->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return soft_cuStreamCreateWithPriority(phStream, Flags, SOFT_LEAST_PRIORITY);
}

CUresult soft_cuStreamDestroy_v2(CUstream hStream)
{
    struct stream *stream;
    SOFT_LOCKED;

    stream = soft_get(SOFT_STREAM, hStream);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->detached)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    device_block_give_locked(stream->context);
    stream_destroy_locked(stream);
    return CUDA_SUCCESS;
}

CUresult soft_cuStreamSynchronize(CUstream hStream)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    return result ? result : stream_synchronize_locked(stream);
}

static bool is_idle_locked(const struct stream *stream)
{
    struct context *context = stream->context;

    if (stream != green_legacy_locked(stream))
        return !stream->last;
    list_for_each (struct stream, other, &context->streams, in_context) {
        if (other->green == stream->green && !(other->flags & CU_STREAM_NON_BLOCKING) &&
            other->last)
            return false;
    }
    return true;
}

CUresult soft_cuStreamQuery(CUstream hStream)
{
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(hStream, &stream);

    if (result)
        return result;
    return is_idle_locked(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult soft_cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct stream *stream;

    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (!result)
        *priority = stream->priority;
    return result;
}

CUresult soft_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct stream *stream;

    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (!result)
        *flags = stream->flags;
    return result;
}

CUresult soft_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct stream *stream;

    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (!result)
        *streamId = stream->id;
    return result;
}

CUresult soft_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct stream *stream;

    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (!result)
        *device = stream->context->device->ordinal;
    return result;
}

CUresult soft_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct stream *stream;

    if (!pCtx)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (result)
        return result;
    *pCtx = (CUcontext)stream->context->handle;
    if (pGreenCtx)
        *pGreenCtx = stream->green ? (CUgreenCtx)stream->green->handle : NULL;
    return CUDA_SUCCESS;
}

/* It knows no green contexts, so it tells what cuCtxFromGreenCtx makes of one. */
CUresult soft_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    CUgreenCtx green;
    CUresult result = soft_cuStreamGetCtx_v2(hStream, pctx, &green);

    return result || !green ? result : soft_cuCtxFromGreenCtx(pctx, green);
}

CUresult soft_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct stream *stream;

    SOFT_LOCKED;
    CUresult result = stream_find_locked(hStream, &stream);

    if (!result)
        *phCtx = stream->green ? (CUgreenCtx)stream->green->handle : NULL;
    return result;
}
