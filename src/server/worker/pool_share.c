/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_share.h. */
#include "pool_share.h"

#include <stdbool.h>

#include "clock.h"
#include "pool_size.h"

/* A worker counts as so many times faster or slower than the average at most. Its sessions may have
 * had other commands than those of the other workers. */
#define FACTOR_MAX 2u

/* One part in so many of the past is forgotten. A worker that loses its CPU for a few milliseconds
 * keeps its sessions, because one that moves waits for its thread to wake. */
#define FORGOTTEN_PART 8u

/* In less time than this, of what is not forgotten, too few turns are made to tell a speed. */
#define KNOWN_NS (5 * NS_PER_MS)

static uint64_t less_of_past(uint64_t past)
{
    return past - past / FORGOTTEN_PART;
}

void pool_turns_add(struct pool_turns *turns, struct pool_turns more)
{
    turns->busy_ns = less_of_past(turns->busy_ns) + more.busy_ns;
    turns->turns = less_of_past(turns->turns) + more.turns;
}

static bool is_known(const struct pool_turns *turns)
{
    return turns->busy_ns >= KNOWN_NS;
}

/* Turns a second of a worker that was busy. */
static uint64_t speed_of(const struct pool_turns *turns)
{
    return turns->turns * NS_PER_SEC / turns->busy_ns;
}

static uint64_t average_speed(const struct pool_turns *turns, unsigned workers)
{
    uint64_t sum = 0;
    unsigned known = 0;

    for (unsigned i = 0; i < workers; i++) {
        if (!is_known(&turns[i]))
            continue;
        sum += speed_of(&turns[i]);
        known++;
    }
    return known ? sum / known : 0;
}

/* At least 1. */
static uint64_t bounded_speed(const struct pool_turns *turns, uint64_t average)
{
    uint64_t speed = is_known(turns) ? speed_of(turns) : average;
    uint64_t least = average / FACTOR_MAX, most = average * FACTOR_MAX;

    return 1 + (speed < least ? least : speed > most ? most : speed);
}

/* Who makes the most turns for each of its sessions with one more than it has. */
static unsigned best_for_one_more(const uint64_t *speeds, unsigned workers, const unsigned *shares)
{
    unsigned best = 0;

    for (unsigned i = 1; i < workers; i++) {
        if (speeds[i] * (shares[best] + 1) > speeds[best] * (shares[i] + 1))
            best = i;
    }
    return best;
}

/* Rounded down, the shares leave fewer sessions over than there are workers. With each of these the
 * session that is worst off is as well off as it can be. */
void pool_share(const struct pool_turns *turns, unsigned workers, unsigned sessions,
                unsigned *ret_shares)
{
    uint64_t average = average_speed(turns, workers), sum = 0, speeds[POOL_WORKERS_MAX];
    unsigned left = sessions;

    for (unsigned i = 0; i < workers; i++) {
        speeds[i] = bounded_speed(&turns[i], average);
        sum += speeds[i];
    }
    for (unsigned i = 0; i < workers; i++) {
        ret_shares[i] = (unsigned)(speeds[i] * sessions / sum);
        left -= ret_shares[i];
    }
    for (; left; left--)
        ret_shares[best_for_one_more(speeds, workers, ret_shares)]++;
}
