/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks that libcuda calls: they turn calls and work into records. */
#pragma once

#include <stdbool.h>

#include "cupti_abi.h"
#include "profiler_interface.h"

extern const struct profiler_hooks cupti_hooks;

/* No more work follows for now: the record of a copy, which may have come in chunks, is whole. */
void cupti_hooks_finish(void);

/* External correlation of the calling thread: the innermost id of each kind goes with its calls. */
CUptiResult cupti_external_push(uint32_t kind, uint64_t id);
CUptiResult cupti_external_pop(uint32_t kind, uint64_t *ret_id);

/* Whether records of kernels have the time at which the driver was given the kernel. */
void cupti_tell_submissions(bool tell);

/* The thread's id in records: that of pthread_self(), or the kernel's. */
void cupti_use_system_threads(bool use);
bool cupti_uses_system_threads(void);
uint32_t cupti_thread_number(void);

void cupti_hooks_after_fork(void);
