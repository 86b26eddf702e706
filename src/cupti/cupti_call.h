/* SPDX-License-Identifier: Apache-2.0 */
/* What a hook asks of a call of the program. */
#pragma once

#include <stdbool.h>

#include "profiler_interface.h"

/* Whether its name begins so. */
bool cupti_call_begins(const struct profiler_call *call, const char *prefix);

/* The stream that it is for: also the thread's own, where the symbol says so. */
CUstream cupti_call_stream(const struct profiler_call *call);

/* Its stream is being captured, so that the call makes a node of a graph. */
bool cupti_call_is_captured(const struct profiler_call *call);
