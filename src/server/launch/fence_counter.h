/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence counters: words in the GPU's memory in which the fence kernel remembers the number that it
 * wrote last. Numbers mostly follow each other, so the kernel can count by itself. The server then
 * need not set each number in the graph's node, which would be a call of the driver.
 */
#pragma once

#include <pthread.h>

#include "driver_table.h"

struct fence_counters;

/* The counters of the device whose context is current. NULL: there is no memory, and each number is
 * given. */
struct fence_counters *fence_counters_create(void);

/* NULL is allowed. */
void fence_counters_destroy(struct fence_counters *fence_counters);

/* From any thread: the address of a counter that no other stream uses, or 0 when none is left. NULL
 * is allowed. */
CUdeviceptr fence_counters_take(struct fence_counters *fence_counters);

/* From any thread: gives a counter back. 0 is allowed. */
void fence_counters_put_back(struct fence_counters *fence_counters, CUdeviceptr fence_counter);
