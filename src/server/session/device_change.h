/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client moves from one device of the server to another. It attaches anew, to this server or the
 * next, makes its objects again there, and brings copies of its memory on the other device
 * (device_copy.h). What it has been told of its device stays true, so both are of the same model.
 */
#pragma once

#include "move_obstacle.h"
#include "session.h"

struct device_change {
    const struct device *from, *to;
};

/* The session's thread: the client stands still, and has no work. Copies its memory to the device.
 * OBSTACLE_NONE, or why it has to stay. */
enum move_obstacle device_change_begin(struct session *session, uint32_t device,
                                       struct device_change *ret_change);

/* The client stays where it is. */
void device_change_undo(struct session *session, const struct device_change *change);
