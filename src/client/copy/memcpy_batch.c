/* SPDX-License-Identifier: Apache-2.0 */
/* The cuMemcpy family in batches: one copy after the other, in the order of the list. */
#include "client_copy.h"
#include "client_prototypes.h"
#include "cuda_batch.h"

static CUresult copy_one(const struct cuda_box *box, CUstream stream)
{
    return copy_described(box, stream, false);
}

static const struct cuda_batch_copier copier = {client_cuMemcpyAsync, copy_one,
                                                client_cuArray3DGetDescriptor_v2};

CUresult client_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
                                   size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs,
                                   size_t numAttrs, size_t *failIdx, CUstream hStream)
{
    return cuda_batch_copy(&copier, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
                           hStream);
}

CUresult client_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
                                      size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs,
                                      size_t numAttrs, CUstream hStream)
{
    return cuda_batch_copy(&copier, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL,
                           hStream);
}

CUresult client_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                     unsigned long long flags, CUstream hStream)
{
    return cuda_batch_copy_boxes(&copier, numOps, opList, failIdx, flags, hStream);
}

CUresult client_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                        unsigned long long flags, CUstream hStream)
{
    return cuda_batch_copy_boxes(&copier, numOps, opList, NULL, flags, hStream);
}
