/* SPDX-License-Identifier: Apache-2.0 */
/* The cuMemcpy family in batches: one copy after the other, in the order of the list. */
#include <stdint.h>

#include "cuda_batch.h"
#include "soft_copy.h"

/* Which one was wrong; SIZE_MAX = the batch as a whole. */
static CUresult copy_all(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                         size_t count, CUstream stream, size_t *ret_failed)
{
    for (size_t i = 0; i < count; i++) {
        CUresult result = soft_cuMemcpyAsync(dsts[i], srcs[i], sizes[i], stream);

        if (result != CUDA_SUCCESS) {
            *ret_failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult soft_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                 size_t *failIdx, CUstream hStream)
{
    size_t failed = SIZE_MAX;
    CUresult result =
        cuda_batch_check(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);

    if (result == CUDA_SUCCESS)
        result = copy_all(dsts, srcs, sizes, count, hStream, &failed);
    if (result != CUDA_SUCCESS && failIdx)
        *failIdx = failed;
    return result;
}

CUresult soft_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
                                    size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs,
                                    size_t numAttrs, CUstream hStream)
{
    return soft_cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL,
                                   hStream);
}

static CUresult copy_one_box(const CUDA_MEMCPY3D_BATCH_OP *op, CUstream stream)
{
    struct cuda_box box;
    CUresult result = cuda_batch_box(op, &box);

    return result == CUDA_SUCCESS ? copy_described(&box, stream, true) : result;
}

CUresult soft_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                   unsigned long long flags, CUstream hStream)
{
    size_t failed = SIZE_MAX;
    CUresult result = CUDA_SUCCESS;

    if (numOps == 0 || !opList || flags || !hStream || hStream == CU_STREAM_LEGACY)
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numOps && result == CUDA_SUCCESS; i++) {
        result = copy_one_box(&opList[i], hStream);
        failed = i;
    }
    if (result != CUDA_SUCCESS && failIdx)
        *failIdx = failed;
    return result;
}

CUresult soft_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                      unsigned long long flags, CUstream hStream)
{
    return soft_cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}
