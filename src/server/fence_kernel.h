/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of our own that writes a fence. What cuStreamWriteValue32 does costs NVIDIA's driver a
 * call under the lock of its context; a kernel can go into one graph with the kernel before it.
 */
#pragma once

#include "chain.h"
#include "device.h"

struct fence_kernel_params {
    uint64_t word; /* address, the same here and on the GPU */
    uint32_t seq;
};

/* Loads it, before there are clients whom that could stall. A device on which it can not be loaded
 * goes without. */
void fence_kernel_load(struct device *device);

void fence_kernel_unload(struct device *device);

/* The launch that writes params->seq. `params` stays the caller's and is read when it is made. */
struct launch fence_kernel_launch(const struct device *device,
                                  const struct fence_kernel_params *params);
