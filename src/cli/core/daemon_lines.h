/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in the language of the daemon, which checks their values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DAEMON_LINE_MAX 512

/* To the daemon that this user's programs reach: 0, or 1 after an error message. */
int daemon_connect(int *ret_fd);

/* Sends a line: 0, or 1, with the answer, or the reason why there is none, in `ret_answer`. */
int daemon_try(int fd, const char *line, char *ret_answer, size_t capacity);

/* The same with a descriptor for the daemon, which stays the caller's; -1 = none. */
int daemon_try_with(int fd, const char *line, int file, char *ret_answer, size_t capacity);

/* Sends a line and hands each line of the answer to `take`: 0, or 1 after an error message. */
int daemon_ask(int fd, const char *line, void (*take)(void *context, const char *text),
               void *context);

/* The same with the answer printed, or with `quiet` not. */
int daemon_run_line(int fd, const char *line, bool quiet);

/* The same as both, and the answer is printed. */
int daemon_run_line_with(int fd, const char *line, int file);

/* Has the daemon start the server of this user: 0 once it serves, or 1 after an error message. */
int daemon_start_server(int fd);

/* "alice" or "1001" as a number in text: false when there is no such user. */
bool daemon_user_id(const char *text, char *ret_uid, size_t capacity);
