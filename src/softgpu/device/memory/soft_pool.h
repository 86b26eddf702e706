/* SPDX-License-Identifier: Apache-2.0 */
/* What pools keep of memory that the program has freed. */
#pragma once

#include <stdint.h>

struct context;
struct device;

/* A pool has `size` bytes back, for which `charged` have been refunded to the device. */
void pool_refund_locked(uint64_t handle, uint64_t size, uint64_t charged);
/* The program has waited for work: pools release what is beyond their thresholds. */
void pools_synchronized_locked(const struct device *device);
/* Releases all that pools of the device keep. */
void pools_release_locked(const struct device *device);
