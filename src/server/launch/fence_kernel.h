/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence kernel: a kernel of the server's own that writes a fence. cuStreamWriteValue32 costs a
 * call under the lock of the driver's context. A kernel can go into one graph with the kernel
 * before it.
 */
#pragma once

#include <stdbool.h>

#include "device.h"
#include "graph_batch.h"
#include "stream.h"

/* Loads it, before there are clients that the load could stall. Where it cannot be loaded, the
 * driver writes the fences of the device. */
void fence_kernel_load(struct device *device);

/* Frees its description and the fence counters. The kernel stays loaded. It may never have been
 * loaded. */
void fence_kernel_unload(struct device *device);

/* Session thread: launches a kernel and its fence with one call. False when that needs two calls.
 * stream_begin_brief() has been called. */
bool fence_kernel_behind(struct stream *stream, const struct launch *launch, uint32_t seq);
