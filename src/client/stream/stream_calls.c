/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on streams: making, ending and waiting. */
#include "client_capture.h"
#include "client_printf.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "managed_hooks.h"
#include "recovery_hook.h"
#include "stream_commands.h"
#include "stream_group.h"
#include "stream_wait.h"
#include "wire_calls.h"

int stream_clamp_priority(const struct device *device, int priority)
{
    if (priority > device->record->priority_least)
        return device->record->priority_least;
    if (priority < device->record->priority_greatest)
        return device->record->priority_greatest;
    return priority;
}

CUresult client_cuStreamCreateWithPriority(CUstream *phStream, unsigned flags, int priority)
{
    struct context *context;
    struct stream *stream;
    CUresult result = context_enter(&context);

    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    context = context_of_streams(context);
    stream = stream_create(context, flags ? STREAM_NONBLOCKING : STREAM_BLOCKING,
                           stream_clamp_priority(context->device, priority));
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phStream = (CUstream)stream->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuStreamCreate(CUstream *phStream, unsigned Flags)
{
    return client_cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult client_cuStreamDestroy_v2(CUstream hStream)
{
    struct stream *stream = handles_get(&client->handles, WIRE_STREAM, (uint64_t)hStream);

    if (!stream)
        return stream_unknown(hStream);
    if (stream->kind == STREAM_LEGACY)
        return CUDA_ERROR_INVALID_HANDLE;
    stream_destroy_handle(hStream);
    return recovery_client_error();
}

/* ---- waiting ---- */

CUresult client_cuStreamSynchronize(CUstream hStream)
{
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    if (result == CUDA_SUCCESS)
        result = stream_synchronize(stream);
    stream_count_wait();
    return result;
}

CUresult client_cuStreamQuery(CUstream hStream)
{
    struct fence fence;
    struct stream *stream;
    CUresult result = stream_enter_uncaptured(hStream, &stream);

    if (result == CUDA_SUCCESS)
        result = stream_fence(stream, &fence);
    if (result != CUDA_SUCCESS)
        return result;
    if (!fence_passed(fence))
        return CUDA_ERROR_NOT_READY;
    printf_output_ask();
    managed_pull();
    return client_asked_error();
}

static CUresult wait_for_context(struct context *context)
{
    CUresult result = stream_synchronize_context(context);

    stream_count_wait();
    return result;
}

CUresult client_cuCtxSynchronize(void)
{
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    return result != CUDA_SUCCESS ? result : wait_for_context(context_of_streams(context));
}

CUresult client_cuCtxSynchronize_v2(CUcontext ctx)
{
    struct context *context;
    CUresult result = recovery_client_error();

    if (result == CUDA_SUCCESS)
        result = context_resolve_streams(ctx, &context);
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    return result != CUDA_SUCCESS ? result : wait_for_context(context);
}
