/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies: the checks that CUDA makes, and the description of each copy. Called without a
 * lock, for the copier's functions take what locks they need. Sizes and pitches
 * are bytes, but elements of the array where a copy has one. */
#pragma once

#include "cuda_box.h"

/* The functions that make the copies, and say what an array is. An error of one ends the batch,
 * and is its result. */
struct cuda_batch_copier {
    CUresult (*copy)(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream);
    CUresult (*copy_box)(const struct cuda_box *box, CUstream stream);
    CUresult (*describe_array)(CUDA_ARRAY3D_DESCRIPTOR *ret_array, CUarray array);
};

/* cuMemcpyBatchAsync: one copy after the other, in the order of the list. `failed` may be NULL;
 * after an error it is the copy that was wrong, or SIZE_MAX for the batch as a whole. */
CUresult cuda_batch_copy(const struct cuda_batch_copier *copier, const CUdeviceptr *dsts,
                         const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                         const CUmemcpyAttributes *attributes, const size_t *indices,
                         size_t attribute_count, size_t *failed, CUstream stream);

/* cuMemcpy3DBatchAsync, likewise. */
CUresult cuda_batch_copy_boxes(const struct cuda_batch_copier *copier, size_t count,
                               const CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                               unsigned long long flags, CUstream stream);
