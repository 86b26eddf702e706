/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures what a driver library writes to this process's standard output and standard error:
 * device printf output and failed assertions, which belong to clients.
 */
#pragma once

#include <stddef.h>

#include "region.h"

/* Before a driver is loaded. The log must have a descriptor other than 1. 0 or -errno. */
int driver_output_capture(void);

/* What was written since the last call, at most `size` bytes; returns how many. The caller sees to
 * it that only one thread calls at a time. */
size_t driver_output_read(enum region_output kind, char *ret_text, size_t size);
