/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How servers share the time of a GPU. Kernels of two servers do not overlap: the GPU runs those of
 * one for a slice of time, then those of the other. Operators give named servers a percentage
 * (`server set NAME --timeslice-pct`, `timeslice_pct` in the configuration file). The slices give
 * these shares to servers that always have work. A server that rests leaves its time to the others.
 *
 * A batch lane (lane.h) has a short slice whatever operators have set, and takes part in no
 * division. Beside it the main lane of a service has a long one. The other lanes of a service share
 * its percentage.
 *
 * A main lane that never rests leaves no time, and two such slices would give a batch lane 0.25 %.
 * While one has not rested for two seconds, batch lanes have a longer slice, with which they get
 * `batch_percent` of the time together. A critical program waits at most that slice longer, and
 * only then. The same goes at once where holds of the GPU for critical programs cover nearly all of
 * the time (server/launch/hold_demand.h). Then both slices are shorter, and the main lane may hold
 * the GPU as long as it has it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct server_process;

/* How long the driver's own slice is, about. */
#define TIMESLICE_DRIVER_US 2000u

/* The time of all slices, when every server has work: so many slices without percentages. */
#define TIMESLICE_PERIOD 5u

/* The slice of the policy 0 default, 1 short, 2 medium or 3 long in microseconds; 0 = the driver's
 * own. NVIDIA does not publish how long its own are. */
uint32_t timeslice_of_policy(uint32_t policy);

/* Measured on an H100 (docs/design/lanes.md), beside kernels of 12 ms. A critical program with 20
 * ms waits for a batch program with 50 us about as long as with 0. It keeps its context until its
 * own work is done. */
#define TIMESLICE_MAIN_US 20000u
#define TIMESLICE_BATCH_US 50u

/* The slice of a main lane that holds the GPU all the time. Its requests wait for the slice of the
 * batch lane, 1.1 ms. On an H200 their p99 was 1.6 ms, with 20 ms it was 13, and with 5 ms 3.4. */
#define TIMESLICE_HELD_US 10000u

/* The share of batch lanes unless FUNNEL_BATCH_SHARE says another, and the highest that it may say.
 */
#define TIMESLICE_BATCH_PERCENT 10u
#define TIMESLICE_BATCH_PERCENT_MAX 90u

/* The longest slice that FUNNEL_BATCH_SLICE may say for batch lanes beside a lane that rests. */
#define TIMESLICE_BATCH_MAX_US 20000u

/* Never 0: a slice of 0 starves its server while another one has work, and two of 0 stop both. */
_Static_assert(TIMESLICE_BATCH_US > 0 && TIMESLICE_MAIN_US > 0, "a slice of 0 starves a lane");

/* The slice of the main lane of a service, where neither a percentage nor a policy says another; 0
 * = the driver's own. Beside other services it stays that of the driver, since a longer one would
 * take their time, and delay them by as much. */
static inline uint32_t timeslice_of_main(unsigned batch_lanes, unsigned main_lanes, bool holds_gpu)
{
    uint32_t us = holds_gpu ? TIMESLICE_HELD_US : TIMESLICE_MAIN_US;

    return batch_lanes && main_lanes == 1 ? us : 0;
}

/* The slice of a server with that percentage, or, with 0, of one of `others` that share what the
 * percentages leave. `given` is the sum of all percentages; when it is 0 every server has the slice
 * `usual`, where 0 is the driver's own. Microseconds. */
uint64_t timeslice_of(uint32_t percent, uint32_t given, unsigned others, uint32_t usual);

/* The slice of each of `batches` batch lanes that get `percent` of the time together. The main
 * lanes beside them never rest, and their slices are `mains_us` together; 0 = all rest. At least
 * `least_us`. */
uint64_t timeslice_of_batch(uint32_t percent, uint64_t mains_us, unsigned batches,
                            uint32_t least_us);

/* Takes the share of the batch lanes from FUNNEL_BATCH_SHARE and their slice from
 * FUNNEL_BATCH_SLICE, or logs why not. */
void timeslice_read_environment(struct daemon *daemon);

/* What a server has said of the time since its last heartbeat. */
struct timeslice_load {
    uint32_t percent; /* of it, with kernels */
    bool held;        /* nearly all of it, for critical programs */
};

void timeslice_note_load(struct server_process *server, struct timeslice_load load);

/* Servers have come or gone, or a percentage has changed: tells each server its slice, where that
 * is another than before. */
void timeslices_divide(struct daemon *daemon);
