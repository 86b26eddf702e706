/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that looks into an image may still do. */
#pragma once

/* Limits and filters cannot be had with a sanitizer, whose library needs more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define READER_HAS_SANITIZER 1
#else
#define READER_HAS_SANITIZER 0
#endif

/* Bytes of private memory: a part of an image that is expanded, and its variables. */
#define READER_MEMORY_MAX (256ull << 20)

/* From now on the process may only compute, get memory, write to what is open, and end. It is
 * killed after `cpu_seconds`. 0 or -errno; a kernel without filters is no error. */
int reader_limits_apply(unsigned cpu_seconds);
