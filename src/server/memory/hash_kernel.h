/* SPDX-License-Identifier: Apache-2.0 */
/* The hash kernel: a kernel of the server's own that hashes chunks of memory, a block each. */
#pragma once

#include "chunk_hash.h"
#include "device.h"

/* The kernel reads the first two and writes the hash. */
struct hash_job {
    uint64_t address; /* a multiple of 8 */
    uint64_t words;   /* of 8 bytes */
    struct chunk_hash hash;
};

/* Loads the kernel, before there are clients that the load could stall. NULL when it cannot be
 * loaded, and the log says so. */
CUfunction hash_kernel_load(const struct device *device);

/* Any thread, in the device's context: hashes for so many jobs, whose addresses are the same for
 * the device. What the driver says. */
CUresult hash_kernel_launch(CUfunction kernel, struct hash_job *jobs, unsigned count,
                            CUstream stream);
