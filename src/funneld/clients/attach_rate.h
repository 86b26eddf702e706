/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a user's programs may attach. Each attach costs the server a thread and a window, and
 * both logs some lines. Programs that come faster than the quota wait a moment instead of being
 * refused; ten seconds' worth of them may come at once.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define ATTACH_USERS 128u
#define ATTACH_BURST_S 10u

/* Users that attached lately: the one that has not for the longest gives way to a new one. */
struct attach_rate {
    struct attach_user {
        uid_t uid;
        uint64_t due;  /* clock_ns(): when all attaches so far have their time, 0 = unused */
        uint64_t last; /* attach */
    } users[ATTACH_USERS];
};

/* Counts an attach at `now`, where a user may have `rate` in a second: how many nanoseconds it has
 * to wait. */
uint64_t attach_rate_charge(struct attach_rate *attach_rate, uid_t uid, uint64_t rate,
                            uint64_t now);
