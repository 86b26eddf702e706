/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and streams by number: how cuBLAS and cuFFT tell them apart, to keep a workspace for
 * each stream and a plan for each context.
 */
#include "tables.h"

static CUresult get_device(CUcontext context, CUdevice *ret_device)
{
    return cudart_ops->context_device(context, ret_device);
}

static CUresult get_id(CUcontext context, uint64_t *ret_id)
{
    unsigned long long id;
    CUresult result = cudart_ops->context_id(context, &id);

    if (result == CUDA_SUCCESS)
        *ret_id = id;
    return result;
}

/*
 * The driver's object behind a stream. Callers only pass it to get_stream_id. So it can be the
 * stream itself, after stream 0 is resolved to a default stream.
 */
static CUresult get_stream_object(CUcontext context, CUstream stream, void **ret_object,
                                  int per_thread)
{
    if (!stream)
        stream = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    *ret_object = stream;
    return CUDA_SUCCESS;
}

static CUresult get_stream_id(CUcontext context, void *object, uint64_t *ret_id)
{
    unsigned long long id;
    CUresult result = cudart_ops->stream_id(context, object, &id);

    if (result == CUDA_SUCCESS)
        *ret_id = id;
    return result;
}

const table_word context_table[93] = {
    [0] = TABLE_SIZE(93),       [1 ... 2] = UNKNOWN_SLOT,
    [3] = get_device,           [4] = get_id,
    [5 ... 38] = UNKNOWN_SLOT,  [39] = get_stream_id,
    [40 ... 50] = UNKNOWN_SLOT, [51] = get_stream_object,
    [52 ... 90] = UNKNOWN_SLOT, [91] = NULL,
    [92] = UNKNOWN_SLOT,
};
