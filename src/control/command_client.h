/* SPDX-License-Identifier: Apache-2.0 */
/* The front end's side of the command protocol: connect, ask, and read answers until DONE. */
#pragma once

#include <stddef.h>

#include "command_protocol.h"
#include "paths.h"

#define COMMAND_REASON_MAX sizeof(((struct welcome *)NULL)->text)

/* Connects and says hello. 0, or -errno. -ENOENT or -ECONNREFUSED: no daemon runs. -EACCES: one
 * does, but the directory is closed to us. -EPERM: another user's process listens, or the daemon
 * refused. `ret_reason` is a message then. */
int command_connect(const struct paths *paths, int *ret_fd, char ret_reason[COMMAND_REASON_MAX]);

/* The same for a process that is about to become a CUDA program: the daemon starts its server if
 * none runs, without waiting for it. */
int command_connect_ahead(const struct paths *paths, int *ret_fd,
                          char ret_reason[COMMAND_REASON_MAX]);

/* One of the two for a caller that cannot wait long for the daemon's welcome: -ETIMEDOUT. */
int command_connect_within(const struct paths *paths, enum hello_kind kind, int timeout_ms,
                           int *ret_fd, char ret_reason[COMMAND_REASON_MAX]);

/* 0; -EMSGSIZE for a line longer than COMMAND_TEXT_MAX; -errno when the daemon is gone. */
int command_send_line(int fd, const char *line);
/* The same with a descriptor, which stays the caller's; -1 = none. */
int command_send_line_with(int fd, const char *line, int file);
int command_send_query(int fd);
int command_send_metrics_query(int fd);

/* The least size of an answer's part of a kind, in bytes; SIZE_MAX for an unknown kind. */
size_t command_least_size(uint32_t kind);

/* In words, why the daemon's answer did not come or cannot be used: such an error of the functions
 * here and of snapshot_read(). */
const char *command_lost(int error);

/* The next part of an answer: its kind, or -errno (-EPIPE: the daemon is gone). A text's length is
 * *ret_length. What is in it can be shown and used (command_check.h). */
int command_receive(int fd, union command_any *ret_message, size_t *ret_length);

/* The same within a time (-1 = no limit): -ETIMEDOUT. */
int command_receive_within(int fd, int timeout_ms, union command_any *ret_message,
                           size_t *ret_length);

/* The same for an answer with files: that of this part, or -1, is the caller's. */
int command_receive_file(int fd, union command_any *ret_message, size_t *ret_length, int *ret_file);

/* The same for an answer whose texts are parts of a longer one, which end anywhere. It only ends
 * them by NUL. */
int command_receive_bytes(int fd, union command_any *ret_message, size_t *ret_length);
