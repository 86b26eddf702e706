/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures what a driver library writes to this process's standard output and standard error:
 * device printf output and failed assertions, which belong to clients.
 *
 * NVIDIA's driver writes the records of a context's printf buffer one behind the other, and each in
 * several writes: every conversion of the format together with the text before it, then the rest.
 * The software GPU does the same. So the single writes are kept: format_match.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

/* Each write is its size, a uint32_t, and its text. */
struct driver_writes {
    char *bytes;
    size_t size, capacity;
};

/* Writes in calls of other purposes, and of threads of the driver itself. */
#define DRIVER_OUTPUT_UNKNOWN DEVICE_CONTEXTS_MAX

/* Before a driver is loaded. 0 or -errno. */
int driver_output_capture(void);

/* From now on what this thread has the driver write to standard output is known to be of this
 * context, or unknown again. */
void driver_output_is_of(unsigned context);

/* Takes what was written of this context since the last call, for the caller to free with
 * driver_writes_fini(). */
void driver_output_take(unsigned context, struct driver_writes *ret_writes);

/* The same of standard error, of all threads: at most `size` bytes; returns how many. */
size_t driver_output_take_errors(char *ret_text, size_t size);

/* Adds a write that is not empty: false beyond 64 MiB, or when out of memory. */
bool driver_writes_add(struct driver_writes *writes, const char *text, size_t size);

/* The write at `at`, which is below the size: returns where the next one begins. */
size_t driver_writes_next(const struct driver_writes *writes, size_t at, const char **ret_text,
                          size_t *ret_size);

void driver_writes_fini(struct driver_writes *writes);
