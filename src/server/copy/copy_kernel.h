/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy kernel: a kernel of the server's own that makes many small copies with one launch. A
 * copy by a copy engine needs a call under the driver's context lock. The GPU also takes some
 * microseconds to switch the stream to the engine and back.
 */
#pragma once

#include "device.h"
#include "small_copy.h"

/* Loads the kernel, before there are clients that the load could stall. Without it the device makes
 * small copies one by one. */
void copy_kernel_load(struct device *device);

/* From any thread, after copy_kernel_load(): whether small copies can be made by the kernel. */
bool copy_kernel_is_loaded(const struct device *device);

/* Session thread: makes 1 to SMALL_COPIES_MAX copies between memory that kernels of the device
 * reach, each of at most SMALL_COPY_MAX bytes. The device's context is current. Returns the
 * driver's result. */
CUresult copy_kernel_launch(const struct device *device, const struct small_copy *copies,
                            unsigned count, CUstream stream);
