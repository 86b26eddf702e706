/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of `funnel run`: the program asks for them itself, by the variables of MPS. */
#pragma once

#include <stdbool.h>

/* The values of --sm, --sms, --memory, --priority, --class and --isolate, NULL = not given; and
 * --show-limit. */
struct run_limits {
    const char *sm, *sms, *memory, *priority, *class, *isolation;
    bool shows_limit;
};

/* Whether any is given. */
bool run_limits_are_given(const struct run_limits *limits);

/* Checks the values: 0, or 2 after an error message. */
int run_limits_check(const struct run_limits *limits);

/* Puts class and isolation into the environment, before the daemon hears of the program and starts
 * the server for these. Returns 0, or an exit status after an error message. */
int run_limits_set_lane(const struct run_limits *limits);

/* Puts the others into the environment. `fd` is connected to the daemon, which knows how many
 * multiprocessors a device has. 0, or an exit status after an error message. */
int run_limits_set(const struct run_limits *limits, int fd);
