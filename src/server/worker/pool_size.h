/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many workers serve the sessions while CPUs are short. Few are enough for programs that wait
 * for their launches, because the driver makes the launches of a context one after the other, and
 * each worker takes a CPU from the programs. Programs that launch without waiting keep more busy.
 */
#pragma once

#include <stdint.h>

struct pool_size {
    unsigned least, most;
};

/* How often workers have looked at sessions, and how often a command was there. */
struct pool_visits {
    uint64_t all, ready;
};

/* No worker where there are too few CPUs for one. */
struct pool_size pool_size_for(unsigned cpus, unsigned contexts);

/* How many workers shall serve after `active` of them had these visits. */
unsigned pool_size_adapt(const struct pool_size *size, unsigned active, struct pool_visits visits);
