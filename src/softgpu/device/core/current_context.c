/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current context: each thread's stack of contexts, of which the top is meant by every call
 * that names none.
 */
#include "soft_context.h"

/* Deeper than any program nests; a push beyond it is refused. */
#define STACK_DEPTH 128

static __thread CUcontext stack[STACK_DEPTH];
static __thread unsigned depth;

static CUcontext top(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult context_current_locked(struct context **ret_context)
{
    CUcontext handle = top();
    struct context *context;

    if (!handle)
        return CUDA_ERROR_INVALID_CONTEXT;
    context = context_get(handle);
    if (!context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!context->active)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxGetCurrent(CUcontext *pctx)
{
    *pctx = top();
    return CUDA_SUCCESS;
}

/* Replaces the top. A primary context may be made current before the program retains it. */
CUresult soft_cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && !context_get(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!ctx) {
        if (depth)
            depth--;
        return CUDA_SUCCESS;
    }
    if (!depth)
        depth = 1;
    stack[depth - 1] = ctx;
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_get(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == STACK_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (pctx)
        *pctx = stack[depth];
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxGetDevice(CUdevice *device)
{
    struct context *context;

    if (!top())
        return CUDA_ERROR_INVALID_CONTEXT;
    context = context_get(top());
    if (!context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    struct context *context;

    if (!ctx)
        return soft_cuCtxGetDevice(device);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    context = context_get(ctx);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}
