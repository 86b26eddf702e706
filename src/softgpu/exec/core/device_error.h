/* SPDX-License-Identifier: Apache-2.0 */
/* Results of device runtime functions: numbers of cudaError_t. */
#pragma once

enum device_error {
    DEVICE_SUCCESS = 0,
    DEVICE_INVALID_VALUE = 1,
    DEVICE_MEMORY_ALLOCATION = 2,
    DEVICE_INVALID_CONFIGURATION = 9,
    DEVICE_LAUNCH_MAX_DEPTH_EXCEEDED = 65,
    DEVICE_LAUNCH_PENDING_COUNT_EXCEEDED = 69,
    DEVICE_LAUNCH_OUT_OF_RESOURCES = 701,
};
