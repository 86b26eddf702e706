/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which a user finds the errors of that user's programs, by whichever daemon they are
 * served. */
#pragma once

#include <stddef.h>

/* A file that has grown larger is renamed to client.log.1 before the next line is written. */
#define USER_LOG_SIZE_MAX (1u << 20)

/* $XDG_STATE_HOME/funnel/client.log, else ~/.local/state/funnel/client.log, or
 * /tmp/funnel-UID/client.log for a user without a writable home. Returns 0 or -ENAMETOOLONG.
 * -EPERM: a program with privileges of its file takes no directory from its environment. */
int user_log_path(char *ret_path, size_t capacity);

/* Opens such a file for appending, with the directories to it: a descriptor, or -errno. Not through
 * a link, and not where the directory belongs to another user. */
int user_log_open(const char *path);

/* Adds a line to such a file, with the record of an event of this process (log_record.h); nothing
 * where that fails. The file is open for this line only, because a program may close descriptors
 * that are not its own. From any thread. */
void user_log_line(const char *path, int error, const char *text);
