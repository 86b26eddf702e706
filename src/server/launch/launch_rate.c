/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_rate.h. */
#include "launch_rate.h"

/* One part in so many is forgotten: with a look every 20 ms, half of it in 0.44 s. */
#define FORGOTTEN_PART 32u

/* A look counts for so much, so that something of it can be forgotten. */
#define SCALE 256u

/* A step of LeNet has 55 launches and a fence. Of these launches 6 to 15 come alone, even where
 * workers are busy. */
#define LAUNCHES_OF_FENCE 8u
#define LONE_PART 16u

static uint64_t add_recent(uint64_t recent, uint64_t more)
{
    return recent - recent / FORGOTTEN_PART + more * SCALE;
}

void launch_rate_note(struct launch_rate *rate, struct launch_counts counts)
{
    struct launch_counts *latest = &rate->latest, *recent = &rate->recent;

    latest->launches = counts.launches - rate->before.launches;
    latest->lone = counts.lone - rate->before.lone;
    latest->fences = counts.fences - rate->before.fences;
    recent->launches = add_recent(recent->launches, latest->launches);
    recent->lone = add_recent(recent->lone, latest->lone);
    recent->fences = add_recent(recent->fences, latest->fences);
    rate->before = counts;
}

bool launch_rate_is_training(const struct launch_rate *rate)
{
    const struct launch_counts *recent = &rate->recent;

    /* Of less than one launch something is never forgotten. */
    return recent->launches >= SCALE && recent->launches > LAUNCHES_OF_FENCE * recent->fences &&
           recent->lone * LONE_PART > recent->launches;
}
