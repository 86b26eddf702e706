/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a process that works on an image. */
#pragma once

#include <stdint.h>

/* Limits and filters cannot be had with a sanitizer, whose library needs more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESS_HAS_SANITIZER 1
#else
#define PROCESS_HAS_SANITIZER 0
#endif

/* From now on the process may only compute, allocate up to `memory_max` bytes, write to open
 * descriptors, and exit. The kernel kills it after `cpu_seconds`. 0 or -errno; a kernel without
 * filters is no error. */
int process_limits_apply(unsigned cpu_seconds, uint64_t memory_max);
