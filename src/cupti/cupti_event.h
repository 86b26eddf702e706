/* SPDX-License-Identifier: Apache-2.0 */
/* Records of events that are recorded. From any thread. */
#pragma once

#include "profiler_interface.h"

/* Called by the hooks after each call of the driver. */
void cupti_event_leave(const struct profiler_call *call);

/* The id of an event in records. */
uint32_t cupti_event_id(CUevent event);

/* The number of the newest record of an event; CUPTI_INVALID_ID: none. */
uint32_t cupti_event_newest(CUevent event);
