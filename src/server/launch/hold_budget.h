/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often holds of the GPU (context_hold.h) may begin: at most one in HOLD_PERIOD_NS on average,
 * and HOLD_BURST of them at once after a rest. A hold takes some 0.13 ms, so
 * all of them take less than a quarter of the time, also behind a closed loop of tiny kernels.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define HOLD_PERIOD_NS (600 * NS_PER_US)
#define HOLD_BURST 16u

struct hold_budget {
    uint64_t spent_until; /* clock_ns() at which all that was taken is earned again */
};

/* Takes a hold at the time `now`, or returns false when too many were taken before. */
static inline bool hold_budget_take(struct hold_budget *budget, uint64_t now)
{
    uint64_t from = budget->spent_until > now ? budget->spent_until : now;

    if (from + HOLD_PERIOD_NS - now > HOLD_BURST * HOLD_PERIOD_NS)
        return false;
    budget->spent_until = from + HOLD_PERIOD_NS;
    return true;
}
