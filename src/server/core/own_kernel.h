/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the server's own, which are written in PTX. */
#pragma once

#include "device.h"

/* Loads the kernel `name` of this PTX for the rest of the process's life, before there are clients
 * that the load could stall. Makes the device's context current. What the driver says. */
CUresult own_kernel_load(const struct device *device, const char *ptx, const char *name,
                         CUfunction *ret_function);

/* Waits at most `limit_ns` for the work of a stream: CUDA_ERROR_NOT_READY when it takes longer.
 * Kernels of clients may take all multiprocessors, and may never end. So a kernel that has to be
 * waited for, since memory must stay until then, comes behind one that touches nothing. */
CUresult own_kernel_await(CUstream stream, uint64_t limit_ns);
