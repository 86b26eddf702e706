/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a kernel of the server's own (own_kernel.h), so that it can be a launch. */
#pragma once

#include "function.h"

struct device;

/* Loads the kernel as own_kernel_load() does. free() ends the record. NULL when the driver refuses
 * it, where `otherwise` goes to the log: what is done without the kernel. NULL also when out of
 * memory. */
struct function *own_function_load(const struct device *device, const char *ptx, const char *name,
                                   uint32_t params_size, const char *otherwise);
