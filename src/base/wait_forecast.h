/* SPDX-License-Identifier: Apache-2.0 */
/* How long the next wait for something will take, from the last ones. Threads that wait for the
 * same thing share a forecast, and each value is a hint. */
#pragma once

#include <stdint.h>

#define WAITS_KNOWN 4u

/* Zeroed at first. */
struct wait_forecast {
    _Atomic uint32_t waits[WAITS_KNOWN]; /* ns; 0 = none yet */
    _Atomic uint32_t count;              /* of all so far */
};

/* The shortest of the last waits in nanoseconds, so that long ones among them make no other one
 * late; 0 until there are four. */
uint32_t wait_forecast_ns(const struct wait_forecast *forecast);

/* A wait has taken so long. */
void wait_forecast_note(struct wait_forecast *forecast, uint64_t ns);
