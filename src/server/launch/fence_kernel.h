/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of our own that writes a fence. What cuStreamWriteValue32 does costs NVIDIA's driver a
 * call under the lock of its context; a kernel can go into one graph with the kernel before it.
 */
#pragma once

#include <stdbool.h>

#include "device.h"
#include "graph_batch.h"
#include "stream.h"

/* Loads it, before there are clients whom that could stall. A device on which it can not be loaded
 * goes without. */
void fence_kernel_load(struct device *device);

void fence_kernel_unload(struct device *device);

/* Launches a kernel and its fence with one call: false when that has to be done in two steps. The
 * stream's order is seen to. */
bool fence_kernel_behind(struct stream *stream, const struct launch *launch, uint32_t seq);
