/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets. Each is one call to the driver, or several where it crosses a border between
 * chunks of page-locked host memory (page_lock.h). The caller has checked that the memory belongs
 * to the client, and the device's context is current. `window` may be NULL for memory in no window.
 * Results are the driver's, or CUDA_ERROR_INVALID_VALUE for a box that needs too many calls.
 */
#pragma once

#include "session.h"
#include "window.h"

/* Copies memory to memory. */
CUresult copy_chunks(const struct window *window, CUdeviceptr dst, CUdeviceptr src, uint64_t size,
                     CUstream stream);

/* Copies memory of this process. The driver has read it when this returns. */
CUresult copy_chunks_up(const struct window *window, CUdeviceptr dst, const void *data,
                        uint64_t size, CUstream stream);

/* The sides are arrays, or memory of type CU_MEMORYTYPE_UNIFIED. */
CUresult copy_chunks_box(const struct window *window, const CUDA_MEMCPY3D *box, CUstream stream);

/* Fills memory as the command describes. */
CUresult copy_chunks_memset(const struct window *window, const struct wire_fnMemset *in,
                            CUstream stream);

/* Whether the box or the memset needs more than one call. */
bool copy_chunks_splits_box(const struct window *window, const CUDA_MEMCPY3D *box);
bool copy_chunks_splits_memset(const struct window *window, const struct wire_fnMemset *in);
