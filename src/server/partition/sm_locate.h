/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which multiprocessors the parts of a device have. A part that the driver has split off
 * does not say so, but the blocks of a kernel in it do, by %smid.
 */
#pragma once

#include <stdint.h>

#include "device.h"

/* Numbers of multiprocessors are below this. */
#define SM_NUMBERS_MAX 512u

struct sm_locator {
    const struct device *device;
    CUfunction kernel;
    CUdeviceptr sighting; /* what the kernel writes */
};

/* Makes the device's context current. What the driver says. */
CUresult sm_locator_init(struct sm_locator *locator, const struct device *device);
void sm_locator_fini(const struct sm_locator *locator);

/* Which of `count` parts, counted from 1, has the multiprocessor of each number; 0 = none of them.
 * The parts have none in common. Makes green contexts and waits for kernels, so there must be no
 * clients yet. What the driver says; CUDA_ERROR_NOT_READY when something has kept the kernel off a
 * multiprocessor. */
CUresult sm_locate(const struct sm_locator *locator, const CUdevResource *parts, unsigned count,
                   uint16_t ret_part[SM_NUMBERS_MAX]);
