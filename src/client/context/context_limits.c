/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a context: read from the device table, set by asking the server. */
#include "context_limits.h"

#include "client_prototypes.h"
#include "recovery_hook.h"
#include "wire_calls.h"

/* cuBLAS asks for these, and takes an error for a broken device. */
static bool answered_with_zero(CUlimit limit)
{
    return limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED ||
           limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED;
}

CUresult client_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct context *context;
    CUresult result = context_current(&context);

    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (context->limits_set >> limit & 1) {
        *pvalue = context->limits[limit];
        return CUDA_SUCCESS;
    }
    if (!(context->device->record->limits_known >> limit & 1)) {
        if (!answered_with_zero(limit))
            return CUDA_ERROR_UNSUPPORTED_LIMIT;
        *pvalue = 0;
        return CUDA_SUCCESS;
    }
    *pvalue = context->device->record->limits[limit];
    return CUDA_SUCCESS;
}

CUresult context_replay_limits(const struct context *context)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t limit = 0; limit < CU_LIMIT_MAX && result == CUDA_SUCCESS; limit++) {
        const struct wire_cuCtxSetLimit in = {
            .device = context->device->index, .limit = limit, .value = context->limits[limit]};

        if (context->limits_set >> limit & 1)
            result = wire_cuCtxSetLimit(&client->channel, &in);
    }
    return result;
}

CUresult client_cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct wire_cuCtxSetLimit in = {.limit = limit, .value = value};
    struct context *context;
    CUresult result = context_enter(&context);

    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    in.device = context->device->index;
    recovery_consider_move();
    result = wire_cuCtxSetLimit(&client->channel, &in);
    if (result != CUDA_SUCCESS)
        return result;
    context->limits[limit] = value;
    context->limits_set |= 1u << limit;
    return CUDA_SUCCESS;
}
