/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks for graphs and their nodes, streams, contexts and modules, as calls of the driver make
 * and end them. */
#pragma once

#include "profiler_interface.h"

/* A call begins, which may end a resource; it has returned, and may have made one. */
void cupti_resource_enter(const struct profiler_call *call);
void cupti_resource_leave(const struct profiler_call *call);

/* Within a call, a module is loaded, or it or a context ends. */
void cupti_resource_change(const struct profiler_resource *resource);
