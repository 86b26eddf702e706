/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a user may cause something that costs others. An attach takes a thread and a window in
 * the server, and lines in both logs. The start of a server takes a process with a context. What
 * comes faster waits instead of being refused; some may come at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define USER_RATE_USERS 128u

/* Users that caused it lately: the one that has not for the longest gives way to a new one. */
struct user_rate {
    uint64_t interval_ns; /* one in so much time */
    unsigned burst;       /* so many at once */
    struct rate_user {
        uid_t uid;
        uint64_t due;  /* clock_ns(): when all so far have their time, 0 = unused */
        uint64_t last; /* time */
    } users[USER_RATE_USERS];
};

/* Counts one at `now`: how many nanoseconds it has to wait. */
uint64_t user_rate_charge(struct user_rate *rate, uid_t uid, uint64_t now);

/* Counts one at `now` unless it would have to wait: whether it did. */
bool user_rate_take(struct user_rate *rate, uid_t uid, uint64_t now);
