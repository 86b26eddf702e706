/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs' use of each GPU in the last day, in memory. Every two seconds the daemon asks its
 * servers. Samples of two seconds are kept for five minutes. Twelve of them become one of 24
 * seconds, kept for an hour; 24 of these become one of 576 seconds, kept for a day. A sample is a
 * mean, so a program that has come and gone between two points of the day is in it as well.
 *
 * Kept only while the daemon serves metrics over HTTP. The daemon's one thread owns it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon.h"
#include "gpu_list.h"
#include "status_query.h"

#define HISTORY_SAMPLES 150u
#define HISTORY_PROGRAMS 1024u /* whose names are known; a new one replaces one that has ended */
#define HISTORY_COLORS 16u

enum history_range {
    HISTORY_MINUTES, /* 5 minutes */
    HISTORY_HOUR,
    HISTORY_DAY,
    HISTORY_RANGES,
};

/* Of one program on one GPU, on average. A sample has 256 at most; the rest is added up as that of
 * program 0. */
struct history_entry {
    uint32_t program; /* its serial number */
    uint32_t gpu;     /* which of usage_history_gpu_uuid() */
    double sms;       /* multiprocessors in use */
    double memory;    /* bytes */
};

struct history_sample {
    double time; /* of its end: wall clock, seconds */
    unsigned count;
    struct history_entry *entries;
};

/* A client of a server. */
struct history_program {
    uint32_t serial; /* never 0; 0 = the place is free */
    bool is_running;
    pid_t server, pid;
    uint32_t id; /* in the server */
    uid_t uid;
    char group[HELLO_GROUP_MAX];
    unsigned color; /* below HISTORY_COLORS; running programs share one only when all are in use */
    uint64_t read_ns;                   /* clock_ns() when the next was read */
    uint64_t sm_ns[SERVER_MAX_DEVICES]; /* of the server's devices */
};

/* 0 or -ENOMEM. */
int usage_history_start(struct daemon *daemon);
void usage_history_stop(void);

/* Takes a sample from what servers have said. */
void usage_history_sample(const struct status_query *query);

/* Seconds that a sample of the range covers. */
unsigned usage_history_period(enum history_range range);

/* The first sample of the range that ended after that time; where there is none, that of the next
 * finer range. NULL behind the newest. It stays until the next sample is taken. */
const struct history_sample *usage_history_next(enum history_range range, double time);

/* NULL where the program is not known any more, as 0 never is. */
const struct history_program *usage_history_program(uint32_t serial);

/* A running client of that server, or NULL before its first sample. */
const struct history_program *usage_history_find(pid_t server, const struct server_status_row *row);

/* NULL beyond the last one. */
const uint8_t *usage_history_gpu_uuid(uint32_t gpu);

/* Multiprocessors of the GPU in use in the newest sample, by all, or by one program. Negative where
 * none has been taken, or where that program has no entry of its own. */
double usage_history_gpu_sms(const uint8_t uuid[16]);
double usage_history_sms(uint32_t serial, const uint8_t uuid[16]);
