/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How closely requests of critical clients follow each other. One switch of the GPU to a batch lane
 * and back takes as long as several short ones. So from a certain rate on holds are lasting
 * (context_hold.h). Where they cover nearly all of the time, the batch lane needs a slice that is
 * its share.
 *
 * Both are seen in windows. What one says holds for some more, so that nothing changes at each
 * short rest.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define HOLD_DEMAND_WINDOW_NS (50 * NS_PER_MS)
#define HOLD_DEMAND_STAYS_NS (500 * NS_PER_MS)

/* One in 0.5 ms. A BERT graph on an H200 has at most 1,750 requests a second. */
#define HOLD_DEMAND_FREQUENT 100u

/* How long a lasting hold goes on behind the last request. Then the part of the time that such
 * holds cover where they leave too little of it. */
#define HOLD_LASTING_NS (300 * NS_PER_US)
#define HOLD_DEMAND_FULL_PERCENT 80u

struct hold_demand {
    uint64_t window; /* clock_ns() at which the present one began */
    uint64_t last;   /* and the last request */
    uint64_t covered_ns;
    unsigned requests;
    atomic_uint_fast64_t frequent; /* when a window last had so many; 0 = never */
    atomic_uint_fast64_t full;     /* when the last window was covered; 0 = never */
};

static inline void hold_demand_end_window(struct hold_demand *demand, uint64_t now)
{
    if (100 * demand->covered_ns >= HOLD_DEMAND_FULL_PERCENT * (now - demand->window))
        atomic_store_explicit(&demand->full, now, memory_order_relaxed);
    demand->window = now;
    demand->covered_ns = demand->requests = 0;
}

/* A request has come, at the time `now`. One thread at a time. Partner: hold_demand_is_recent(). */
static inline void hold_demand_note(struct hold_demand *demand, uint64_t now)
{
    uint64_t gap = now - demand->last;

    demand->last = now;
    demand->covered_ns += gap < HOLD_LASTING_NS ? gap : HOLD_LASTING_NS;
    if (now - demand->window >= HOLD_DEMAND_WINDOW_NS)
        hold_demand_end_window(demand, now);
    if (++demand->requests >= HOLD_DEMAND_FREQUENT)
        atomic_store_explicit(&demand->frequent, now, memory_order_relaxed);
}

/* Partner: hold_demand_note(), which may have seen a later time. */
static inline bool hold_demand_is_recent(const atomic_uint_fast64_t *seen, uint64_t now)
{
    uint64_t at = atomic_load_explicit(seen, memory_order_relaxed);

    return at && (int64_t)(now - at) < (int64_t)HOLD_DEMAND_STAYS_NS;
}

/* From any thread: whether requests follow each other closely. */
static inline bool hold_demand_is_high(const struct hold_demand *demand, uint64_t now)
{
    return hold_demand_is_recent(&demand->frequent, now);
}

/* From any thread: whether lasting holds cover nearly all of the time. */
static inline bool hold_demand_is_full(const struct hold_demand *demand, uint64_t now)
{
    return hold_demand_is_recent(&demand->full, now);
}
