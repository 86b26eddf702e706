/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a client launches, and how. Several looks of the watchdog count, because a program that
 * waits for a CPU launches nothing for some milliseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct launch_counts {
    uint64_t launches, lone, fences; /* launch_record.h */
};

struct launch_rate {
    struct launch_counts before; /* at the last look */
    struct launch_counts latest; /* from the look before it to that one */
    struct launch_counts recent; /* a part of it is forgotten with each look */
};

/* A look: what the client has made so far. */
void launch_rate_note(struct launch_rate *rate, struct launch_counts counts);

/* Whether the program computes between its launches and waits for few of them, as a training. */
bool launch_rate_is_training(const struct launch_rate *rate);
