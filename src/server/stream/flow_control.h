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

/* What bounds how much a stream has in flight: FLOW_SUBMISSIONS_MAX, the limit, or its bursts. */
enum flow_rule { FLOW_BY_COUNT, FLOW_BY_LIMIT, FLOW_BY_BURST };

/* What the stream's thread finds when it polls a stream. In one wait it polls several times, and
 * passes the same variable each time. */
struct flow_poll {
    uint64_t now;
    bool begins_step;      /* what the stream is given next is a step */
    int32_t given;         /* submissions since the last step; 0 after the first poll */
    bool is_idle;          /* at the first poll the stream had done all that it was given */
    bool is_new_burst;     /* the client gave another stream some before */
    int32_t done;          /* submissions that were found done now */
    int32_t awaited;       /* submissions before the next checkpoint; 0 = there is none */
    enum flow_rule rule;   /* for what it is given next */
    uint64_t before;       /* the poll before; 0 = this is the first. Written by flow_control.c */
    uint64_t awaits_since; /* the next checkpoint. Written by flow_control.c */
};

/* Of a new stream. Unlimited: its submissions are counted only (FUNNEL_OFF=flow-control). */
void flow_control_init(struct flow_control *flow, bool is_unlimited);

/* Submissions in flight may take `in_flight_ns` from now on. */
void flow_control_set_time(struct flow_control *flow, uint64_t in_flight_ns);

/* Learns from a poll. Returns how long to pause until the next one; 0 = the stream may be given
 * more. */
uint64_t flow_control_poll(struct flow_control *flow, struct flow_poll *poll);
