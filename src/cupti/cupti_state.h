/* SPDX-License-Identifier: Apache-2.0 */
/* What the program has asked for, and whether libcuda calls our hooks. From any thread. */
#pragma once

#include <stdbool.h>

#include "cupti_abi.h"

/* Whether records of this kind are wanted. One load. */
bool cupti_kind_is_on(uint32_t kind);

/* Turns a kind on or off. When it goes off, the work that is done has its records already.
 * CUPTI_ERROR_INVALID_KIND: Funnel does not have the kind. CUPTI_ERROR_NOT_SUPPORTED: the driver is
 * not Funnel's. CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: another CUPTI of this process is at
 * work. */
CUptiResult cupti_kind_switch(uint32_t kind, bool on);

/* Turns all kinds off. */
void cupti_kinds_off(void);

/* The program wants callbacks (cupti_callback.h), or none any more. */
CUptiResult cupti_callbacks_switch(bool on);

/* Writes records of all work that is done; with `ask` the server is asked for the newest. */
void cupti_collect(bool ask);

/* Whether calls of this number, of the driver or the runtime, get records: as
 * cuptiActivityEnableDriverApi() and cuptiActivityEnableRuntimeApi() have it. */
bool cupti_call_is_on(bool of_runtime, uint32_t cbid);
CUptiResult cupti_call_switch(bool of_runtime, uint32_t cbid, bool on);
