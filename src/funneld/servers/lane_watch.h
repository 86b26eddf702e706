/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves to the batch lane that no operator has ordered. A program whose kernels are long makes the
 * short kernels of others wait for it. Where they wait much longer than a switch between two lanes
 * costs, it moves to the batch lane. It comes back when that did not shorten the kernels of the
 * others, or when it loses three quarters of its own speed. It also comes back when its kernels are
 * short, or when no other program has had work for a while. Whether the others have short kernels
 * shows after the move alone: one that has never been alone before may only have waited.
 *
 * Programs of class normal are moved, where no operator has given them that class while they ran.
 * Programs that are one of several processes of a job stay. They may open each other's memory later
 * by cudaIpc, whose names do not reach another lane. FUNNEL_OFF=lane-moves in the daemon's
 * environment switches all of this off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "hello.h"
#include "lane_signs.h"
#include "list.h"
#include "server_protocol.h"

struct client_record;
struct daemon;

/* A switch costs some 70 us: kernels that wait for ten times as long gain by one. */
#define LANE_WAIT_NS (700 * NS_PER_US)

/* Kernels that come many at a time, as in a graph, wait less each. A program waits, too, when its
 * kernels take so many times as long as alone. */
#define LANE_SLOWDOWN 4u

/* How long kernels of a program wait that has never been seen alone. */
#define LANE_WAIT_UNKNOWN_NS (5 * NS_PER_MS)

/* A program that has never been alone has the long kernels when it takes so many times the
 * multiprocessors of the one that waits. */
#define LANE_DOMINANCE 4u

/* A move does not pay when a launch of the program takes so many times as long after it. Two
 * reports in a row have to say so. */
#define LANE_LOSS 4u

/* The batch lane is started when a program begins to wait, since a start takes a second. It is no
 * more often than this. */
#define LANE_AHEAD_NS (60 * NS_PER_SEC)

/* Servers report programs that work every two seconds. One without a report for so long has no
 * kernels for which others could wait. */
#define LANE_FRESH_NS (3 * NS_PER_SEC)

/* After a move that did not pay. */
#define LANE_RETRY_NS (600 * NS_PER_SEC)

/* After a move that was not possible, for what the program has (move_obstacle.h). */
#define LANE_OBSTACLE_NS (3600 * NS_PER_SEC)

/* After a return that was not possible. */
#define LANE_STAY_NS (60 * NS_PER_SEC)

/* When no other program has had work for so long, the moved one comes back. */
#define LANE_QUIET_NS (30 * NS_PER_SEC)

/* What a program's kernels are like, by two reports of its usage. */
struct client_pace {
    struct server_usage seen; /* the last report */
    uint64_t at;              /* clock_ns() of it; 0 = none */
    uint64_t alone_ns;  /* a launch in the last interval without kernels of others; 0 = none yet */
    uint64_t launch_ns; /* a launch in the last interval; 0 = none was busy */
    uint64_t busy_ns, sm_ns; /* in the last interval */
    uint64_t shared_percent; /* of busy_ns: while others had kernels */
    unsigned waits;          /* intervals in which it waited for long, one after the other */
};

/* A report `now`. Arithmetic alone. */
void client_pace_note(struct client_pace *pace, const struct server_usage *usage, uint64_t now);

/* How long its kernels take: alone, if it has been, else beside others. */
uint64_t client_pace_kernel_ns(const struct client_pace *pace);

/* Whether a program of this pace waits for long kernels of one of that pace. */
bool client_pace_waits(const struct client_pace *pace, const struct client_pace *offender);

/* A report of the client's usage has come: may move it, or another one of its service. */
void lane_watch_note(struct client_record *record);

/* Forgets the moves of programs that have ended: to be called now and then. */
void lane_watch_close(struct daemon *daemon);
