/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets, each as one call to the driver, or as several where it touches host memory
 * that is locked in chunks (page_lock.h) and crosses from one into another. The caller has checked
 * that what they touch is the client's own, and the device's context is current. `window` may be
 * NULL for memory in no window. What the driver says; CUDA_ERROR_INVALID_VALUE for a box that would
 * need too many calls.
 */
#pragma once

#include "session.h"
#include "window.h"

/* Copies memory to memory. */
CUresult copy_chunks(const struct window *window, CUdeviceptr dst, CUdeviceptr src, uint64_t size,
                     CUstream stream);

/* Copies memory of this process, which the driver has read when this returns. */
CUresult copy_chunks_up(const struct window *window, CUdeviceptr dst, const void *data,
                        uint64_t size, CUstream stream);

/* The sides are arrays, or memory of type CU_MEMORYTYPE_UNIFIED. */
CUresult copy_chunks_box(const struct window *window, const CUDA_MEMCPY3D *box, CUstream stream);

/* Fills memory as the command describes. */
CUresult copy_chunks_memset(const struct window *window, const struct wire_fnMemset *in,
                            CUstream stream);

/* Whether these would need more than one call. */
bool copy_chunks_splits_box(const struct window *window, const CUDA_MEMCPY3D *box);
bool copy_chunks_splits_memset(const struct window *window, const struct wire_fnMemset *in);
