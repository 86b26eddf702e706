/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's stack of contexts, and questions about contexts. */
#include "client_context.h"
#include "client_prototypes.h"
#include "client_thread.h"
#include "context_lifetime.h"

/* ---- the calling thread's stack ---- */

CUresult client_cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_lookup(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_make_current(ctx) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUcontext popped = context_stack_pop(&thread_self()->stack);

    if (!popped)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx)
        *pctx = popped;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && !context_lookup(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    thread_keep();
    return context_stack_replace(&thread_self()->stack, ctx) == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuCtxGetCurrent(CUcontext *pctx)
{
    *pctx = context_stack_top(&thread_self()->stack);
    return CUDA_SUCCESS;
}

/* A primary context has a device even while the program does not retain it. */
CUresult client_cuCtxGetDevice(CUdevice *device)
{
    struct context *context = context_lookup(context_stack_top(&thread_self()->stack));

    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    struct context *context = ctx ? context_lookup(ctx) : NULL;

    if (!ctx)
        return client_cuCtxGetDevice(device);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

/* ---- properties ---- */

CUresult client_cuCtxGetFlags(unsigned *flags)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result == CUDA_SUCCESS)
        *flags = context->flags;
    return result;
}

CUresult client_cuCtxSetFlags(unsigned flags)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (!context_flags_are_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->flags = flags;
    return result;
}

CUresult client_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct context *context;
    CUresult result = context_resolve_streams(ctx, &context);

    if (result == CUDA_SUCCESS)
        *ctxId = context->id;
    return result;
}

CUresult client_cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
    struct context *context;
    CUresult result = context_resolve(ctx, &context);

    if (result == CUDA_SUCCESS)
        *version = context->version;
    return result;
}

CUresult client_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result == CUDA_SUCCESS)
        *pconfig = context->cache;
    return result;
}

CUresult client_cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct context *context;
    CUresult result = context_current(&context);

    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->cache = config;
    return result;
}

CUresult client_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result == CUDA_SUCCESS)
        *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return result;
}

/* On all devices that Funnel supports banks have one width. */
CUresult client_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct context *context;

    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return context_current(&context);
}

CUresult client_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct context *context;
    CUresult result = context_current(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (leastPriority)
        *leastPriority = context->device->record->priority_least;
    if (greatestPriority)
        *greatestPriority = context->device->record->priority_greatest;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxResetPersistingL2Cache(void)
{
    struct context *context;

    return context_enter(&context);
}
