/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a word that changes without a wake-up, or with a late one.
 *
 * An interrupt of a GPU takes several hundred microseconds to wake a thread. With more than a few
 * CPUs a sleeping thread polls by itself, at intervals that grow with its wait. It is late by some
 * 30 us or by a hundredth of its wait, whichever is more, and needs a few percent of a CPU. With
 * FUNNEL_OFF=timed-polling in the environment it sleeps until it is woken.
 *
 * While CPUs are short, each poll takes time from other programs. Then the thread first sleeps
 * through most of what such waits have taken, polls less often, and is woken later. Where each
 * program has a CPU, a thread spins behind the first sleep of a wait, and sees the end of most
 * waits at once. The wait is up to 200 us.
 *
 *     struct timed_poll poll = timed_poll_begin(scarcity);
 *     while (!ready(word))
 *         futex_wait(word, value, timed_poll_next(&poll, longest));
 *     timed_poll_end(&poll);
 *
 * One thread uses a struct, from begin to end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What the caller knows of a wait while CPUs are short. */
struct timed_poll_scarcity {
    uint32_t spin_ns;  /* the longest spin; 0 = CPUs are not short */
    uint32_t expected; /* ns that the wait will take; 0 = not known */
};

struct timed_poll {
    struct timed_poll_scarcity scarcity;
    uint64_t began, woken; /* clock_ns() */
    uint64_t interval;     /* ns, the last one */
    long slack;            /* ns of timer slack that this thread had; 0 = nothing to restore */
    bool enabled;          /* false: sleeps until it is woken */
};

/* Whether the wait is best begun with a sleep, and not with a spin. */
bool timed_poll_sleeps_first(struct timed_poll_scarcity scarcity);

/* Whether a wait that took so long says how long others will take. Where programs share CPUs, a
 * thread uses that only behind its spin, so waits that end in the spin do not count. */
bool timed_poll_counts(struct timed_poll_scarcity scarcity, uint64_t took);

/* Also asks the kernel for punctual timers for this thread, until timed_poll_end(). A wait that is
 * shorter than expected ends up to a millisecond late. */
struct timed_poll timed_poll_begin(struct timed_poll_scarcity scarcity);

/* Nanoseconds to sleep now, at most `longest`. Called again after each sleep. Sleeps that last much
 * longer than asked for mean, even where CPUs are not known to be short, more threads than CPUs.
 * Then all later answers are `longest`. */
uint64_t timed_poll_next(struct timed_poll *poll, uint64_t longest);

/* After the first sleep: the next ones of this process end earlier by what this one was late. */
void timed_poll_note_lateness(const struct timed_poll *poll);

/* Whether the thread has still to be woken: it does not poll, or has waited for long. */
bool timed_poll_needs_wake(const struct timed_poll *poll);

void timed_poll_end(struct timed_poll *poll);
