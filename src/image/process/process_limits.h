/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that has to do with an image may still do. */
#pragma once

#include <stdint.h>

/* Limits and filters cannot be had with a sanitizer, whose library needs more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESS_HAS_SANITIZER 1
#else
#define PROCESS_HAS_SANITIZER 0
#endif

/* From now on the process may only compute, get up to `memory_max` bytes of private memory, write
 * to what is open, and end. It is killed after `cpu_seconds`. 0 or -errno; a kernel without filters
 * is no error. */
int process_limits_apply(unsigned cpu_seconds, uint64_t memory_max);
