/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of driver calls, one line for each:
 *
 *     PID.TID START DURATION NAME(ARGUMENTS) = RESULT
 *
 * START is CLOCK_MONOTONIC when the call began and DURATION is how long it took, both in
 * microseconds. So the lines of several processes on one machine can be merged.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes the line of a call that began at `began_ns` (clock_ns) and ends now. `began_ns` is 0 for a
 * call in which tracing began; the line gives its duration as 0. The line is one write, so threads
 * and processes do not mix; arguments that do not fit are cut off. False when the file cannot be
 * written. */
bool call_trace_write(int fd, const char *name, uint64_t began_ns, int result, const char *format,
                      va_list arguments);
