/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of clients that wait for memory of a device. The first for each device orders victims to
 * leave (victims.h), and tries again each time one has, or has left a slice of its memory.
 */
#pragma once

#include "memory.h"

/* On the stack of the session's thread. */
struct room_wait {
    struct list link;
    struct session *session;
    uint64_t need[SERVER_MAX_DEVICES]; /* bytes */
    const struct device *device;       /* in whose context the attempt is made; NULL: `returns` */
    bool returns;
    uint64_t deadline;       /* clock_ns(); 0 = none */
    uint64_t freed, look_at; /* what `freed` was at the last look, and when the next one is */
    bool in_vain;            /* all that may leave is not enough */
};

/* The session's thread: makes attempts until there is room, or the wait has an end. A return takes
 * what there is at each attempt. The last result of an attempt. */
CUresult room_line_wait(struct room_wait *wait, memory_attempt *attempt, void *context);

/* The same: what a client needs for its return. */
void room_line_count_need(struct room_wait *wait);
