/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a client that is about to move to another server: session_leave.h. */
#pragma once

#include <stdint.h>

#include "move_obstacle.h"

struct session;

/* Session thread, while the client's work is done and it sends no more: makes the file of what its
 * variables hold (saved_variables.h), for the caller to close. -1 when there is nothing to be said.
 * OBSTACLE_NONE, or why the client has to stay; the log has the details. */
enum move_obstacle leave_variables_save(struct session *session, int *ret_fd, uint64_t *ret_size);

/* Sends the client that file, or that there is none. */
void leave_variables_send(struct session *session, int fd, uint64_t size);
