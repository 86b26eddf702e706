/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies: what CUDA refuses, and what each copy is. */
#pragma once

#include "cuda_box.h"

/* A batch of plain copies: CUDA_ERROR_INVALID_VALUE where it makes no sense as a whole. */
CUresult cuda_batch_check(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                          size_t count, const CUmemcpyAttributes *attributes, const size_t *indices,
                          size_t attribute_count, CUstream stream);

/* The box that a copy of a batch means. Arrays are CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuda_batch_box(const CUDA_MEMCPY3D_BATCH_OP *op, struct cuda_box *ret_box);
