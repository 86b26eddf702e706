/* SPDX-License-Identifier: Apache-2.0 */
/* Records of devices, contexts and streams. */
#pragma once

#include <stdbool.h>

#include "profiler_interface.h"

/* Called by the hooks after each call of the driver. The first one tells all devices. */
void cupti_object_leave(const struct profiler_call *call);

/* The program has enabled `kind` anew, and is told all again. */
void cupti_object_forget(uint32_t kind);

/* A context has ended, and may be made again. */
void cupti_object_forget_context(uint32_t id);

void cupti_object_after_fork(void);
