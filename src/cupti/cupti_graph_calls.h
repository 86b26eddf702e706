/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks for graphs and their nodes, as calls of the driver make and end them. */
#pragma once

#include "profiler_interface.h"

/* A call of the cuGraph family begins, which may end something. */
void cupti_graph_call_enter(const struct profiler_call *call);

/* Any call has returned without an error, and may have made something. */
void cupti_graph_call_leave(const struct profiler_call *call);
