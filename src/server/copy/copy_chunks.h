/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets, each as one call to the driver, or as several where it touches host memory
 * that is locked in pieces (page_lock.h) and crosses from one into another. All have been checked:
 * what they touch is the client's own.
 */
#pragma once

#include "session.h"
#include "window.h"

CUresult copy_chunks(const struct window *window, CUdeviceptr dst, CUdeviceptr src, uint64_t size,
                     CUstream stream);

/* From memory of this process, which the driver has read when this returns. */
CUresult copy_chunks_up(const struct window *window, CUdeviceptr dst, const void *data,
                        uint64_t size, CUstream stream);

/* The sides are arrays, or memory of type CU_MEMORYTYPE_UNIFIED. */
CUresult copy_chunks_box(const struct window *window, const CUDA_MEMCPY3D *box, CUstream stream);

CUresult copy_chunks_memset(const struct window *window, const struct wire_fnMemset *in,
                            CUstream stream);

/* Whether these would be more than one call. */
bool copy_chunks_splits_box(const struct window *window, const CUDA_MEMCPY3D *box);
bool copy_chunks_splits_memset(const struct window *window, const struct wire_fnMemset *in);
