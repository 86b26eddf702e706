/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.log, and the files of what servers log (server_log.h). Lines have the format and, where
 * NVIDIA's daemon has one, the wording of MPS, so that tools which read that log can read this one.
 * In the foreground they go to standard output, too.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "log_record.h"

/* Opens (after SIGHUP: reopens) <directory>/control.log: 0 or -errno; the old one stays then. */
int journal_open(const char *directory, bool foreground);

void journal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with a record (log.h): journal_with(LOG_ABOUT(pid), ...). */
void journal_with(const struct log_record *record, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the user who causes the lines that follow (0 = the daemon itself), and returns the one
 * before. The lines that a user causes in a minute are limited, so that users cannot fill the disk;
 * those of operators are not. */
uid_t journal_account(uid_t uid);

/* The bytes that a user may cause in a minute. */
void journal_set_quota(uint64_t bytes);

/* Puts control.log, or with a `name` the log of that server, aside as *.old when it has more than
 * `most` bytes; whether it did. Then control.log has to be opened again. */
bool journal_put_aside(const char *directory, const char *name, uint64_t most);

/* Where journal_append_server() writes: 0 or -ENAMETOOLONG. */
int journal_server_path(const char *directory, const char *name, char path[PATH_MAX]);

/* Appends lines to the log of a server: <directory>/server.log for that of the daemon's own user,
 * else <directory>/<name>/server.log. Beside the daemon's user, `reader` may read it, whose server
 * it is. 0, or -errno, and then nothing is written. */
int journal_append_server(const char *directory, const char *name, uid_t reader, const char *text,
                          size_t size);
