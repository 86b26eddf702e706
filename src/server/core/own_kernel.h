/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the server's own, which are written in PTX. */
#pragma once

#include "device.h"

/* Loads the kernel `name` of this PTX for the rest of the process's life, before there are clients
 * that the load could stall. Makes the device's context current. What the driver says. */
CUresult own_kernel_load(const struct device *device, const char *ptx, const char *name,
                         CUfunction *ret_function);
