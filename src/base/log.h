/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a process: one line is one write(2), so lines of several processes never mix.
 *
 * A process that never calls log_open() is silent; this is how the library inside a user's program
 * behaves by default. Logging never blocks and never kills. It drops and counts a line that it
 * cannot write (disk full, pipe full). The next line that it can write says how many were lost. Any
 * thread may log, with any lock held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "log_record.h"

/* Sends later lines to `fd`, marked with `role` ("Control", "Server", ...). A file must be open
 * with O_APPEND, for that is what keeps the lines of several writers apart. The caller keeps the
 * descriptor, which must stay open; -1 turns the log off again. `role` must outlive the log. */
void log_open(int fd, const char *role);

/* Writes "[YYYY-MM-DD HH:MM:SS.mmm Role   pid] text\n". errno is preserved. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with a record behind the text: log_with(LOG_ABOUT(pid), ...). NULL = without one. */
void log_with(const struct log_record *record, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes such a line to another descriptor: whether it could be written. */
bool log_line_to(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As log_line(), but only with FUNNEL_DEBUG=1 in the environment. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How many lines were lost so far. */
uint64_t log_dropped(void);
