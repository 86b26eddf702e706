/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the calls about managed memory: places, batches of ranges, attachments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

/* An ordinal as the older calls have it: CU_DEVICE_CPU is the host. */
CUmemLocation cuda_location_of(CUdevice device);

/* CUDA_ERROR_INVALID_DEVICE for a device that there is not, CUDA_ERROR_INVALID_VALUE for an unknown
 * kind of place. */
CUresult cuda_location_check(CUmemLocation location, int device_count);

/* A batch of ranges, as cuMemPrefetchBatchAsync has it. Without locations (NULL) all are to be
 * where they are. */
struct cuda_ranges {
    const CUdeviceptr *addresses;
    const size_t *sizes;
    size_t count;
    const CUmemLocation *locations;
    const size_t *first_ranges; /* of each location */
    size_t location_count;
    unsigned long long flags;
};

typedef CUresult cuda_range_function(void *user, CUdeviceptr address, size_t size,
                                     CUmemLocation location);

/* Calls `function` for each range until it fails, and returns its result. A batch that CUDA refuses
 * is CUDA_ERROR_INVALID_VALUE before that. */
CUresult cuda_ranges_visit(const struct cuda_ranges *ranges, cuda_range_function *function,
                           void *user);

/* The length that cuStreamAttachMemAsync takes for a whole allocation of `size` bytes. */
bool cuda_attach_is_valid(CUstream stream, uint64_t size, uint64_t length, unsigned flags);
