/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts with a part of the client's multiprocessors. Either the program asks for a number of
 * them (execution affinity). Or a variable of MPS gives each context the percentage of the
 * environment at its creation.
 */
#include "affinity.h"

#include "client_prototypes.h"
#include "context_lifetime.h"
#include "environment.h"
#include "switch.h"
#include "wire_calls.h"

#define CENTIPERCENT_ALL 10000u

static bool by_context(void)
{
    return switch_is_on("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING");
}

void affinity_destroy_share(uint32_t share)
{
    struct wire_fnShareDestroy in = {.share = share};

    if (!share)
        return;
    channel_lock(&client->channel);
    wire_fnShareDestroy(&client->channel, &in);
    channel_unlock(&client->channel);
}

/* A context on a part of the device. When the server has no such part left, its error is the
 * call's. */
static CUresult open_with_share(CUcontext *pctx, unsigned flags, CUdevice dev,
                                const struct wire_fnShareCreate *wish)
{
    struct wire_fnShareCreate_reply reply;
    CUresult result = client_error();

    if (result == CUDA_SUCCESS)
        result = wire_fnShareCreate(&client->channel, wish, &reply);
    if (result != CUDA_SUCCESS)
        return result;
    result = context_open(pctx, flags, dev, reply.share, reply.sm_count);
    if (result != CUDA_SUCCESS)
        affinity_destroy_share(reply.share);
    return result;
}

CUresult client_cuCtxCreate_v2(CUcontext *pctx, unsigned flags, CUdevice dev)
{
    struct device *device = device_lookup(dev);
    struct hello now = {0};

    if (by_context())
        environment_limits(&now);
    if (!device || !now.sm_centipercent || now.sm_centipercent >= CENTIPERCENT_ALL)
        return context_open(pctx, flags, dev, 0, 0);
    return open_with_share(pctx, flags, dev,
                           &(struct wire_fnShareCreate){.device = device->index,
                                                        .sm_centipercent = now.sm_centipercent});
}

CUresult client_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                               unsigned flags, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (numParams < 0 || numParams > 1 || (numParams > 0) != (paramsArray != NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (numParams == 0)
        return client_cuCtxCreate_v2(pctx, flags, dev);
    if (paramsArray->type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!paramsArray->param.smCount.val)
        return CUDA_ERROR_INVALID_VALUE;
    return open_with_share(
        pctx, flags, dev,
        &(struct wire_fnShareCreate){.device = device->index,
                                     .sm_count = paramsArray->param.smCount.val});
}

CUresult client_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned flags,
                               CUdevice dev)
{
    if (!ctxCreateParams)
        return client_cuCtxCreate_v2(pctx, flags, dev);
    if (ctxCreateParams->cigParams)
        return ctxCreateParams->execAffinityParams ? CUDA_ERROR_INVALID_VALUE
                                                   : CUDA_ERROR_NOT_SUPPORTED;
    return client_cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
                                 ctxCreateParams->numExecAffinityParams, flags, dev);
}

void affinity_release(struct context *context)
{
    context->legacy = NULL;
    affinity_destroy_share(context->share);
    context->share = 0;
}

CUresult affinity_replay(struct context *context)
{
    const struct wire_fnShareCreate wish = {.device = context->device->index,
                                            .sm_count = context->sm_count};
    struct wire_fnShareCreate_reply reply;
    CUresult result;

    if (!context->share)
        return CUDA_SUCCESS;
    result = wire_fnShareCreate(&client->channel, &wish, &reply);
    if (result != CUDA_SUCCESS)
        return result;
    context->share = reply.share;
    return reply.sm_count == context->sm_count ? CUDA_SUCCESS
                                               : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

/* ---- asking ---- */

CUresult client_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_lookup(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pi = 1;
    return CUDA_SUCCESS;
}

CUresult client_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    struct context *context;
    CUresult result = context_enter(&context);

    if ((unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val =
        context->share
            ? context->sm_count
            : (unsigned)device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

/* As in MPS this is the client's number, or that of the current context where contexts have their
 * own percentages. */
int affinity_sm_count(const struct device *device)
{
    struct context *context;

    if (context_current(&context) == CUDA_SUCCESS && context->share && context->device == device &&
        by_context())
        return (int)context->sm_count;
    return device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}
