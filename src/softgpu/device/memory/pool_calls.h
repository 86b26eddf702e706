/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. Memory is new when it is allocated and gone when the stream has come to
 * its free. But what the pool keeps reserved stays charged to the device.
 */
#pragma once

#include "soft_pool.h"

/* A pool of another process, which the program destroys. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult pool_import_locked(struct device *device, const struct pool_token *token,
                            CUmemoryPool *ret_pool);

/* A pool has `size` bytes back, for which `charged` have been refunded to the device. */
void pool_refund_locked(uint64_t handle, uint64_t size, uint64_t charged);
/* The program has waited for work: pools release what is beyond their thresholds. */
void pools_synchronized_locked(const struct device *device);
/* Releases all that pools of the device keep. */
void pools_release_locked(const struct device *device);
