/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether requests of critical clients follow each other so closely that a batch lane cannot have
 * the GPU in between: one switch there and back takes as long as one or more of them. Then single
 * holds of the GPU are too few, and whoever asks keeps it all the time (context_hold.h).
 *
 * Requests are counted in windows. What a crowded window says holds for some more, so that nothing
 * changes hands at each short rest.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define HOLD_DEMAND_WINDOW_NS (50 * NS_PER_MS)
#define HOLD_DEMAND_STAYS_NS (500 * NS_PER_MS)

/* One in 0.5 ms. A BERT graph on an H200 has at most 1,750 requests a second. */
#define HOLD_DEMAND_CROWD 100u

struct hold_demand {
    uint64_t window; /* clock_ns() at which the present one began */
    unsigned requests;
    atomic_uint_fast64_t crowded; /* when the last crowd was seen; 0 = never */
};

/* A request has come, at the time `now`. One thread at a time. Partner: hold_demand_is_high(). */
static inline void hold_demand_note(struct hold_demand *demand, uint64_t now)
{
    if (now - demand->window >= HOLD_DEMAND_WINDOW_NS) {
        demand->window = now;
        demand->requests = 0;
    }
    if (++demand->requests >= HOLD_DEMAND_CROWD)
        atomic_store_explicit(&demand->crowded, now, memory_order_relaxed);
}

/* From any thread: whether they follow each other closely. Partner: hold_demand_note(), which may
 * have seen a later time. */
static inline bool hold_demand_is_high(const struct hold_demand *demand, uint64_t now)
{
    uint64_t crowded = atomic_load_explicit(&demand->crowded, memory_order_relaxed);

    return crowded && (int64_t)(now - crowded) < (int64_t)HOLD_DEMAND_STAYS_NS;
}
