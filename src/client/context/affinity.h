/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts with a part of the client's multiprocessors. */
#pragma once

#include "client_context.h"

/* How many multiprocessors a device says it has, to the calling thread at this moment. */
int affinity_sm_count(const struct device *device);

/* Gives a context's share back, when its streams are gone. */
void affinity_release(struct context *context);
