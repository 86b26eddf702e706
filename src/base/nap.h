/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping for what wakes nobody, or wakes late.
 *
 * An interrupt of a GPU takes several hundred microseconds to wake somebody. Where CPUs are plenty
 * a sleeper looks again by itself at times that grow with how long it has slept: it is late by
 * some 30 us or by a hundredth of its wait, whichever is more, and needs a few percent of a CPU.
 * FUNNEL_NO_NAPS=1 in the environment leaves it to whoever wakes it.
 *
 *     struct nap nap = nap_begin();
 *     while (!ready(word))
 *         futex_wait(word, value, nap_next(&nap, longest));
 *     nap_end(&nap);
 */
#ifndef FUNNEL_NAP_H
#define FUNNEL_NAP_H

#include <stdbool.h>
#include <stdint.h>

struct nap {
    uint64_t began, woken, length; /* clock_ns(), clock_ns(), ns of the last one */
    long slack; /* how late the kernel may wake this thread otherwise; 0 = as it was */
    bool naps;  /* false: sleeps until it is woken */
};

/* Also asks the kernel to be punctual with this thread, until nap_end(). */
struct nap nap_begin(void);

/* Nanoseconds to sleep now, at most `longest`. Called again after each sleep; where those last too
 * long there are more threads than CPUs, and all later answers are `longest`. */
uint64_t nap_next(struct nap *nap, uint64_t longest);

void nap_end(struct nap *nap);

#endif
