/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of one stream: the arithmetic of how many submissions it may have in flight. Here is
 * neither a session nor a driver; stream_flow.c feeds it with times by clock_ns().
 *
 * The limit is as many submissions as take FLOW_IN_FLIGHT_NS, by the average time of one. In a
 * client with several streams the work of the others lies in the ring behind that of the stream
 * that waits. So each may have as many as its client gives it in one burst, up to four times the
 * limit and at least eight. Streams that are filled one after the other then overlap. Streams that
 * are used in turn are not far ahead of the GPU for long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define FLOW_IN_FLIGHT_NS (40 * NS_PER_MS)
#define FLOW_LENT_NS (1 * NS_PER_MS) /* on multiprocessors that the client has borrowed */
#define FLOW_SUBMISSIONS_MAX 512
#define FLOW_BATCH_MAX 16

struct flow_control {
    int32_t left;                     /* submissions until the next step */
    int32_t step;                     /* what `left` was at the last step; 0 = there was none yet */
    int32_t limit;                    /* submissions that may be in flight for the sake of time */
    int32_t batch;                    /* submissions that may be given to the driver at once */
    int32_t in_flight;                /* submissions that are not known to be done */
    int32_t burst, last_burst;        /* submissions before the client gave another stream some:
                                       * this time, as far as is known, and the time before */
    uint64_t passed_after, passed_at; /* a checkpoint was reached between these; 0 = unknown */
    uint64_t stepped_at;              /* the last step */
    uint64_t in_flight_ns;            /* that submissions in flight may take */
    uint64_t submission_ns;           /* the time of a submission, an average; 0 = unknown */
};

void flow_control_init(struct flow_control *flow, bool is_unlimited);

/* Submissions in flight may take `in_flight_ns` from now on. */
void flow_control_set_time(struct flow_control *flow, uint64_t in_flight_ns);

/* The stream has done all that it was given. */
void flow_control_clear(struct flow_control *flow);

/* `count` submissions were given since the last step, in a new burst or in the same. */
void flow_control_count_burst(struct flow_control *flow, int32_t count, bool is_new);

/* `count` submissions were found done `now`. The first of them was not yet at `before`, or that is
 * 0. The thread may have slept for long before it looked, so it knows only these bounds. */
void flow_control_done(struct flow_control *flow, int32_t count, uint64_t before, uint64_t now);

/* The stream has done `count` submissions since the last step, and may have been idle meanwhile. */
void flow_control_done_since_step(struct flow_control *flow, int32_t count, uint64_t now);

/* The next checkpoint, behind `count` submissions, has been awaited for this long. Other work on
 * the GPU may be the cause; then later checkpoints tell better. True when twice as much may be in
 * flight now, because the work there may wait for the client's next launch. */
bool flow_control_waited(struct flow_control *flow, int32_t count, uint64_t waited);

/* Whether the stream may have more in flight; `is_strict` allows no more than the limit. */
bool flow_control_has_capacity(const struct flow_control *flow, bool is_strict);

/* How long to pause between two polls of a checkpoint behind `count` submissions. */
uint64_t flow_control_poll_ns(const struct flow_control *flow, int32_t count);

/* Begins the next step. */
void flow_control_step(struct flow_control *flow, bool was_idle);
