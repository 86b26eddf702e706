/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the memory of a program stays on its device before that of another one may take its
 * place, and whose memory leaves first.
 *
 * A program that has come back stays for a quantum. That is four times as long as its memory is
 * under way, out and back, so copies take a fifth of the time at most. (The way back counts twice,
 * because the first way out also makes page-locked memory.) When programs come back soon after they
 * have left, the device thrashes. Then the pace doubles, and with it the quanta of all that are at
 * work, so that they take turns. Times are those of clock_ns(). The functions take no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Copies then take one part in seventeen. */
#define STAY_PACE_MAX 4u

/* Of one program. */
struct memory_stay {
    uint64_t since;   /* when its memory came to the device */
    uint64_t left_at; /* when it left; 0 = it is on the device */
    uint64_t back_ns; /* how long it took to come back the last time; 0 = it never has */
};

/* Of one server. Begins as {.factor = 1}. */
struct stay_pace {
    unsigned factor;                /* of quanta: 1 .. STAY_PACE_MAX, a power of two */
    uint64_t grown_at, thrashed_at; /* the last time */
    uint64_t bytes, ns; /* of all returns so far: what a program takes that has never left */
};

/* `most` bounds it, in nanoseconds. */
uint64_t memory_stay_quantum(const struct stay_pace *pace, const struct memory_stay *stay,
                             uint64_t bytes, bool is_idle, uint64_t most);

/* A program that was called at a time has come back after `ns`, and `quantum` is the one that it
 * had before. True when the pace has changed. */
bool memory_stay_returns(struct stay_pace *pace, struct memory_stay *stay, uint64_t bytes,
                         uint64_t ns, uint64_t called_at, uint64_t quantum);

/* A program whose memory may leave. */
struct resident {
    uint32_t class;      /* enum client_class, never critical */
    bool is_idle;        /* its client has no work */
    uint64_t bytes;      /* on the device */
    uint64_t ns;         /* for how long it has been idle, or else on the device */
    bool is_partly_away; /* a part of its memory is away, so it does not run */
};

/* Whether `a` leaves rather than `b` when `need` bytes are missing. A program that is partly away
 * goes first, then a batch program, then an idle one, then one that suffices alone. The last rule
 * is the one that has been idle for longer for its size. */
bool resident_leaves_before(const struct resident *a, const struct resident *b, uint64_t need);
