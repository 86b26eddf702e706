/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver knows of a kernel. */
#pragma once

#include "module_cache.h"

/* Asks the driver for a kernel of the library, and for what clients have to know of it, and enters
 * it among the library's kernels. On the session's thread, in the device's context; `session` may
 * be NULL, as for cached_query_begin(). What the driver says, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kernel_query(struct cached *cached, struct session *session, const char *name,
                      struct known_kernel **ret_known);
