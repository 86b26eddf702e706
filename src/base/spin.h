/* SPDX-License-Identifier: Apache-2.0 */
/* Busy-waiting for a short while before going to sleep.
 *
 * A wake-up through the kernel costs several microseconds, and an answer often comes sooner. But
 * with few cores a spinning thread takes the core of the very process that it waits for. Hence the
 * budget: about 50 us, 2 us with a single CPU for this process, none with FUNNEL_OFF=spin in the
 * environment.
 *
 *     struct spin spin = spin_begin();
 *     while (!ready(word) && spin_more(&spin))
 *         ;
 *     if (!ready(word)) ... sleep
 *
 * A struct is one thread's; the functions without one are for any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where two threads that wait for each other say on which CPUs they are: the CPU's number + 1, 0 =
 * not known. On a busy machine both may be on the same one, and one that spins there keeps the
 * other from running. Either word may be wrong, and no more than time is lost by it. */
struct spin_cpus {
    _Atomic uint32_t *mine; /* NULL = there is no such partner */
    const _Atomic uint32_t *partners;
};

struct spin {
    uint64_t deadline;     /* clock_ns() at which to give up; 0 = the clock was not read yet */
    uint64_t budget;       /* ns */
    uint64_t yielding;     /* ns after the deadline in which every round yields the core */
    uint64_t last_check;   /* clock_ns() as it was last read; 0 = never */
    struct spin_cpus cpus; /* set by the caller: where the one it waits for is */
    uint32_t rounds;
};

/* Nanoseconds to spin before sleeping, worked out once for the process. */
uint64_t spin_budget_ns(void);

/* Starts a spin. Costs nothing: the clock is first read after some rounds. */
struct spin spin_begin(void);

/* Starts a spin for waiting on the GPU, which wakes no thread by itself. With plenty of CPUs it
 * goes on for `yielding_ns` after the usual budget, but yields its core to any other thread. It
 * ends once another thread has had the core for long, because there are then more threads than
 * cores. */
struct spin spin_begin_yielding(uint64_t yielding_ns);

/* Limits all later spins of this process, because this machine has more threads at work than CPUs;
 * 0 = no limit. */
void spin_limit(uint32_t ns);

/* Whether there are enough CPUs to poll more often than is needed. */
bool spin_is_cheap(void);

/* Whether this process may use more than one CPU, however many threads are at work on them. */
bool spin_has_several_cpus(void);

/* Pauses the core a moment; false once the budget is used up. */
bool spin_more(struct spin *spin);
