/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many workers serve the sessions while CPUs are short. Few are enough for programs that wait
 * for their launches. The driver makes the launches of a context one after the other, and each
 * worker takes a CPU from the programs. Programs that launch without waiting keep more busy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of a server. */
#define POOL_WORKERS_MAX 256u

struct pool_size {
    unsigned least, most;
};

/* ns that workers had sessions, and of that the time of rounds in which a command was there. */
struct pool_time {
    uint64_t all, busy;
};

/* No worker where there are too few CPUs for one. */
struct pool_size pool_size_for(unsigned cpus, unsigned contexts);

/* How many serve at first where launches of trainings are gathered. */
unsigned pool_size_few(const struct pool_size *size);

/* How many serve there later. A session that moves to another worker waits for its thread to wake,
 * so the number only grows. `recent` is the time of the last half second. */
unsigned pool_size_adapt_gathering(const struct pool_size *size, unsigned active,
                                   struct pool_time recent);

/* How many workers shall serve after `active` of them have spent their time like this. Fewer are
 * best for programs of which most are trainings: their threads need the CPUs. */
unsigned pool_size_adapt(const struct pool_size *size, unsigned active, struct pool_time time,
                         bool trains);
