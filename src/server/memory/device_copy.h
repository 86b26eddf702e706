/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of a client's memory on another device. The client gets a descriptor of each copy, in the
 * inbox and behind that of the memory itself (device_granule.h). It takes the second when it moves
 * to the device, and the first when this server ends before. The server holds the copies
 * until the session ends or the client stays, so that all of them have memory at a time. They are
 * charged to the client for as long: one that never takes them has its memory twice.
 *
 * Functions are the session thread's. The client has no work, and its commands wait.
 */
#pragma once

#include "loader.h"
#include "move_obstacle.h"
#include "session.h"

struct device_copies {
    CUmemGenericAllocationHandle *handles;
    unsigned count, capacity;
    unsigned device;  /* where they are */
    uint64_t charged; /* bytes */
};

/* Copies all that the client has on the device `from` to the device `to`: OBSTACLE_NONE, or why
 * not. Then no copy is left. */
enum move_obstacle device_copies_make(struct session *session, const struct device *from,
                                      const struct device *to);

/* The client stays: drops the copies of what it has on the device. */
void device_copies_drop(struct session *session, const struct device *from);

/* The session ends: the client has the copies. */
void device_copies_release(struct session *session);
