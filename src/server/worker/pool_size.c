/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_size.h. The figures are those of an H100 with 16 CPUs: docs/notes/performance-causes.md
 */
#include "pool_size.h"

/* The programs need the others. */
#define CPUS_PER_WORKER 4u

/* More threads only contend for the driver's mutex. */
#define WORKERS_PER_CONTEXT 4u

/* So large a part of the workers is enough for programs that wait for their launches. */
#define LEAST_PART 2u

/* Workers are busy in more than three parts of four of their time, and idle in less than one. */
#define PARTS 4u
#define BUSY_PARTS 3u

/* For trainings, one worker in so many is not used. Where launches are gathered, it is the only one
 * that is. */
#define TRAINING_PART 4u

/* These workers are too few when they are busy in more than so many parts of sixteen. */
#define FULL_PARTS 16u
#define TOO_BUSY_PARTS 15u

static unsigned smaller_count(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

struct pool_size pool_size_for(unsigned cpus, unsigned contexts)
{
    unsigned most = smaller_count(cpus / CPUS_PER_WORKER, WORKERS_PER_CONTEXT * contexts);

    most = smaller_count(most, POOL_WORKERS_MAX);

    return (struct pool_size){.least = (most + LEAST_PART - 1) / LEAST_PART, .most = most};
}

unsigned pool_size_few(const struct pool_size *size)
{
    return (size->most + TRAINING_PART - 1) / TRAINING_PART;
}

static unsigned most_for_trainings(const struct pool_size *size)
{
    return size->most - size->most / TRAINING_PART;
}

unsigned pool_size_adapt_gathering(const struct pool_size *size, unsigned active,
                                   struct pool_time recent)
{
    if (recent.busy * FULL_PARTS > recent.all * TOO_BUSY_PARTS)
        return most_for_trainings(size) > active ? most_for_trainings(size) : active;
    return active;
}

unsigned pool_size_adapt(const struct pool_size *size, unsigned active, struct pool_time time,
                         bool trains)
{
    unsigned most = trains ? most_for_trainings(size) : size->most;

    if (time.busy * PARTS > time.all * BUSY_PARTS)
        return most;
    return time.busy * PARTS <= time.all || active < size->least ? size->least
                                                                 : smaller_count(active, most);
}
