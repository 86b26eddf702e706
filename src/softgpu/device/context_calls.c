/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that a program makes, and what can be asked of any context.
 */

#include "cudart.h"
#include "device_sync.h"
#include "soft_context.h"
#include "soft_green.h"
#include "soft_stream.h"

static CUresult create_context(CUcontext *ret_handle, unsigned flags, CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    struct context *context;

    if (!ret_handle || (flags & ~CU_CTX_FLAGS_MASK))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    SOFT_LOCKED;
    CUresult result = context_create_locked(device, flags, &context);

    if (!result)
        *ret_handle = (CUcontext)context->handle;
    return result;
}

CUresult soft_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result = create_context(pctx, flags, dev);

    return result ? result : soft_cuCtxPushCurrent_v2(*pctx);
}

/* Affinity is for parts of a device, which this form cannot make. */
CUresult soft_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                             unsigned int flags, CUdevice dev)
{
    if (paramsArray && numParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return soft_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult soft_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult soft_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                             unsigned int flags, CUdevice dev)
{
    if (ctxCreateParams && ctxCreateParams->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (ctxCreateParams)
        return soft_cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
                                   ctxCreateParams->numExecAffinityParams, flags, dev);
    return soft_cuCtxCreate_v2(pctx, flags, dev);
}

static void pop_if_current(CUcontext handle)
{
    CUcontext current;

    if (soft_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == handle)
        soft_cuCtxPopCurrent_v2(NULL);
}

CUresult soft_cuCtxDestroy_v2(CUcontext ctx)
{
    struct context *context = context_get(ctx);

    if (!context || context->is_primary) /* a green one is the primary, too */
        return CUDA_ERROR_INVALID_CONTEXT;
    cudart_context_gone(ctx);
    pop_if_current(ctx);
    SOFT_LOCKED;
    if (!handles_remove(&soft_handles, SOFT_CONTEXT, context->handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    context_deactivate_locked(context);
    context_free(context);
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    struct context *context;

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (result)
        return result;
    context->attached++;
    return soft_cuCtxGetCurrent(pctx);
}

static bool drop_attached(struct context *context)
{
    SOFT_LOCKED;
    bool dropped = context->attached > 0;

    context->attached -= dropped;
    return dropped;
}

/* The last reference is the one that came with cuCtxCreate. */
CUresult soft_cuCtxDetach(CUcontext ctx)
{
    struct context *context = context_get(ctx);

    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return drop_attached(context) ? CUDA_SUCCESS : soft_cuCtxDestroy_v2(ctx);
}

static CUresult synchronize_locked(struct context *context, struct green *green)
{
    return green ? green_synchronize_locked(green) : context_synchronize_locked(context);
}

CUresult soft_cuCtxSynchronize(void)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = capture_unsafe_locked();

    /* Of a context that has failed, too, the text of its kernels comes out. */
    if (!result)
        result = context_current_locked(&context);
    return result ? result : synchronize_locked(context, green_current_locked());
}

CUresult soft_cuCtxSynchronize_v2(CUcontext ctx)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_find_locked(ctx, &context);
    struct green *green = ctx ? green_of_context_locked(ctx) : green_current_locked();

    if (!result)
        result = capture_unsafe_locked();
    return result ? result : synchronize_locked(context, green);
}

CUresult soft_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct context *context;

    SOFT_LOCKED;
    CUresult result = context_find_locked(ctx, &context);

    if (!result)
        *version = context->api_version;
    return result;
}

CUresult soft_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct context *context;

    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_find_locked(ctx, &context);
    struct green *green = ctx ? green_of_context_locked(ctx) : green_current_locked();

    if (!result)
        *ctxId = green ? green->id : context->id;
    return result;
}

CUresult soft_cuCtxGetFlags(unsigned int *flags)
{
    struct context *context;

    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (!result)
        *flags = context->flags;
    return result;
}

CUresult soft_cuCtxSetFlags(unsigned int flags)
{
    struct context *context;

    if (flags & ~CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (!result)
        context->flags = flags;
    return result;
}

/* Kernels do not wait for kernels of theirs on devices of compute capability 9.0. */
static bool is_known(CUlimit limit)
{
    return limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH;
}

/* Libraries ask for some of these and give up when the question itself is refused. */
CUresult soft_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct context *context;

    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_known(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (!result)
        *pvalue = context->limits[limit];
    return result;
}

static bool can_be_set(CUlimit limit)
{
    return limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE && is_known(limit);
}

CUresult soft_cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct context *context;

    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!can_be_set(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_STACK_SIZE && value > 512 << 10)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result && (limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE))
        device_sync_emulate_locked(context);
    return result ? result : context_set_limit_locked(context, limit, value);
}

CUresult soft_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct context *context;

    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (!result)
        *pconfig = context->cache;
    return result;
}

CUresult soft_cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (result)
        return result;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache = config;
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct context *context;

    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (!result)
        *pConfig = context->shared_config;
    return result;
}

CUresult soft_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct context *context;

    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (!result)
        context->shared_config = config;
    return result;
}

CUresult soft_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_current_locked(&context);

    if (result)
        return result;
    if (leastPriority)
        *leastPriority = SOFT_LEAST_PRIORITY;
    if (greatestPriority)
        *greatestPriority = SOFT_GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

CUresult soft_cuCtxResetPersistingL2Cache(void)
{
    struct context *context;
    SOFT_LOCKED;

    return context_use_locked(&context);
}
