/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How servers share the time of a GPU. Kernels of two servers do not overlap: the GPU runs those of
 * one for a slice of time, then those of the other. Operators give named servers a percentage
 * (`server set NAME --timeslice-pct`, `timeslice_pct` in the configuration file), and the slices
 * are such that servers which always have work get these shares. A server that rests leaves its
 * time to the others.
 *
 * A batch lane (lane.h) has a short slice whatever operators have set, and takes part in no
 * division. Beside it the main lane of a service has a long one. The other lanes of a service share
 * its percentage.
 */
#pragma once

#include <stdint.h>

struct daemon;

/* How long the driver's own slice is, about. */
#define TIMESLICE_DRIVER_US 2000u

/* The time of all slices, when every server has work: so many slices without percentages. */
#define TIMESLICE_PERIOD 5u

/* The slice of the policy 0 default, 1 short, 2 medium or 3 long in microseconds; 0 = the driver's
 * own. NVIDIA does not publish how long its own are. */
uint32_t timeslice_of_policy(uint32_t policy);

/* Measured on an H100 (docs/design/lanes.md): beside kernels of 12 ms, a critical program with 20
 * ms waits for a batch program with 50 us about as long as with 0, and keeps its context until its
 * own work is done. */
#define TIMESLICE_MAIN_US 20000u
#define TIMESLICE_BATCH_US 50u

/* Never 0: a slice of 0 starves its server while another one has work, and two of 0 stop both. */
_Static_assert(TIMESLICE_BATCH_US > 0 && TIMESLICE_MAIN_US > 0, "a slice of 0 starves a lane");

/* The slice of the main lane of a service, where neither a percentage nor a policy says another; 0
 * = the driver's own. Beside other services it stays that of the driver, since a longer one would
 * take their time, and delay them by as much. */
static inline uint32_t timeslice_of_main(unsigned batch_lanes, unsigned main_lanes)
{
    return batch_lanes && main_lanes == 1 ? TIMESLICE_MAIN_US : 0;
}

/* The slice of a server with that percentage, or, with 0, of one of `others` that share what the
 * percentages leave. `given` is the sum of all percentages; when it is 0 every server has the slice
 * `usual`, where 0 is the driver's own. Microseconds. */
uint64_t timeslice_of(uint32_t percent, uint32_t given, unsigned others, uint32_t usual);

/* Servers have come or gone, or a percentage has changed: tells each server its slice, where that
 * is another than before. */
void timeslices_divide(struct daemon *daemon);
