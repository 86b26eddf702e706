/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the driver about a kernel. */
#pragma once

#include "module_cache.h"

/* Looks a kernel of the library up in the driver, reads the facts that clients need, and adds it to
 * the library's kernels. On the session's thread, in the device's context; `session` may be NULL,
 * as for cached_query_begin(). Returns the driver's result, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kernel_query(struct cached *cached, struct session *session, const char *name,
                      struct known_kernel **ret_known);
