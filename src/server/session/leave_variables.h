/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a client that is about to move to another server: session_leave.h. */
#pragma once

#include <stdint.h>

#include "move_obstacle.h"

struct session;

/* What a client gets when it may go. */
struct leave_parcel {
    int fd; /* the file of its variables; -1 = there is nothing to be said */
    uint64_t size;
    uint32_t device_change; /* attach.h: DEVICE_CHANGE(), or 0 */
};

/* Session thread, while the client's work is done and it sends no more. Makes the file of what its
 * variables hold (saved_variables.h), for the caller to close. OBSTACLE_NONE, or why the client has
 * to stay; the log has the details. */
enum move_obstacle leave_variables_save(struct session *session, struct leave_parcel *ret_parcel);

/* Sends the client that file, or that there is none. */
void leave_parcel_send(struct session *session, const struct leave_parcel *parcel);
