/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures the driver library's writes to standard output and standard error: device printf output
 * and failed assertions of clients.
 *
 * NVIDIA's driver writes the records of a context's printf buffer in order, each in several writes.
 * They are every conversion of the format with the text before it, then the rest. The software GPU
 * does the same. format_match.h needs the single writes.
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

/* Writes during other calls, and by threads of the driver. */
#define DRIVER_OUTPUT_UNKNOWN ATTACH_DEVICES_MAX

/* Before a driver is loaded. 0 or -errno. */
int driver_output_capture(void);

/* From now on the driver's writes to standard output on this thread belong to this context, or to
 * DRIVER_OUTPUT_UNKNOWN. */
void driver_output_is_of(unsigned context);

/* Takes the writes of this context since the last call. The caller frees them with
 * driver_writes_fini(). */
void driver_output_take(unsigned context, struct driver_writes *ret_writes);

/* The same for standard error, of all threads: at most `size` bytes; returns their number. */
size_t driver_output_take_errors(char *ret_text, size_t size);

/* Adds a write that is not empty: false beyond 64 MiB, or when out of memory. */
bool driver_writes_add(struct driver_writes *writes, const char *text, size_t size);

/* Reads the write at `at`, which is below the size. Returns the position of the next one. */
size_t driver_writes_next(const struct driver_writes *writes, size_t at, const char **ret_text,
                          size_t *ret_size);

/* Frees the texts; also of what is all zeros. */
void driver_writes_fini(struct driver_writes *writes);
