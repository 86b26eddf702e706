/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts with a part of the client's multiprocessors. */
#pragma once

#include "client_context.h"

/* How many multiprocessors a device says it has, to the calling thread at this moment. */
int affinity_sm_count(const struct device *device);

/* Sets as many multiprocessors apart for a context with another server as it had, before its
 * streams are made there. The server's error, or CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY when it has
 * no such part. */
CUresult affinity_replay(struct context *context);

/* Gives a share of the server's back. 0 is none. */
void affinity_destroy_share(uint32_t share);

/* Gives a context's share back, when its streams are gone. */
void affinity_release(struct context *context);
