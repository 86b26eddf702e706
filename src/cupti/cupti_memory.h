/* SPDX-License-Identifier: Apache-2.0 */
/* Records of memory that is allocated and freed, and of memory pools. Called by the hooks around
 * each call of the driver. */
#pragma once

#include "profiler_interface.h"

void cupti_memory_enter(const struct profiler_call *call);
void cupti_memory_leave(const struct profiler_call *call);
