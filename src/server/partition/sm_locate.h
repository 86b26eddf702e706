/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the multiprocessors of each part of a device. The driver does not report them, but blocks
 * of a kernel in the part read %smid.
 */
#pragma once

#include <stdint.h>

#include "device.h"

/* Numbers of multiprocessors are below this. */
#define SM_NUMBERS_MAX 512u

struct sm_locator {
    const struct device *device;
    CUfunction kernel;
    CUdeviceptr sighting; /* the kernel's result */
};

/* Makes the device's context current. Returns the driver's result. */
CUresult sm_locator_init(struct sm_locator *locator, const struct device *device);
void sm_locator_fini(const struct sm_locator *locator);

/* For each multiprocessor the part, counted from 1, that contains it; 0 = none. The `count` parts
 * are disjoint. Creates green contexts and waits for kernels, so there must be no clients yet.
 * Returns the driver's result, or CUDA_ERROR_NOT_READY when other work kept the kernel off a
 * multiprocessor. */
CUresult sm_locate(const struct sm_locator *locator, const CUdevResource *parts, unsigned count,
                   uint16_t ret_part[SM_NUMBERS_MAX]);
