/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software GPU's libcuda.so.1 exports beyond CUDA, for the server. NVIDIA's library has
 * none of it. All functions may be called from any thread, after cuInit().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

#define SOFT_EXPORT __attribute__((visibility("default")))

/* The caller logs the errors of this library's calls itself: from now on the library writes none to
 * the user's log. Also before cuInit(). */
SOFT_EXPORT void funnelErrorsAreLogged(void);

/* Every launch that the calling thread makes from now on, of a kernel or of a graph, belongs to
 * this owner. The caller chooses the number; 0: no owner, as at first. */
SOFT_EXPORT void funnelSetLaunchOwner(uint64_t owner);

/* None of this owner's launches runs or is queued, and it makes no more: what its kernels have
 * taken with malloc is free again. Each owner has a heap of its own, as large as the context's
 * limit. CUDA_ERROR_NOT_SUPPORTED where FUNNEL_SOFT_ONE_HEAP is set: all owners share one. */
SOFT_EXPORT CUresult funnelForgetLaunchOwner(uint64_t owner);

/*
 * Ends the running kernels of this owner, and skips its queued ones. Both finish as if they were
 * done, so the context stays healthy and their waiters continue. Other work of the owner, such as
 * copies, is done as usual, and so are its later launches. Does not wait until the kernels have
 * ended.
 *
 * ret_kernel gets the name of one kernel that ran, cut off at `size` bytes with its NUL, or "".
 * CUDA_ERROR_INVALID_VALUE without an owner or without space for a name;
 * CUDA_ERROR_NOT_SUPPORTED where FUNNEL_SOFT_NO_ABORT is set.
 */
SOFT_EXPORT CUresult funnelAbortLaunches(uint64_t owner, char *ret_kernel, size_t size);
