/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the one subscriber: calls of driver, runtime and NVTX, contexts that are made, and
 * waits. */
#pragma once

#include <stdbool.h>

#include "cupti_abi.h"
#include "profiler_interface.h"

/* Called around each call, by the hooks. */
void cupti_callback_enter(const struct profiler_call *call, uint32_t correlation);
void cupti_callback_leave(const struct profiler_call *call, uint32_t cbid);

/* Whether the program wants any for resources but that a context was made. */
bool cupti_callback_wants_resources(void);

/* A callback for a resource. `context` may be NULL: the current one. */
void cupti_callback_resource(uint32_t cbid, const struct cupti_resource_data *resource);

/* The context of this id has ended, and may be made again. */
void cupti_callback_forget_context(uint32_t id);

/* Called for each call of NVTX. */
void cupti_callback_nvtx(const struct profiler_mark *mark);

/* Ends the subscription, if there is one. */
void cupti_callback_end(void);

void cupti_callback_after_fork(void);
