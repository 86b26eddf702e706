/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a kernel of the server's own (own_kernel.h), so that it can be a launch. */
#pragma once

#include "function.h"

/* free() ends it. NULL when out of memory. */
struct function *own_function_create(CUfunction made, const char *name, uint32_t params_size);
