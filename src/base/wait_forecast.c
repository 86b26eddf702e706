/* SPDX-License-Identifier: Apache-2.0 */
/* Relaxed atomics: nothing else is published by them. */
#include "wait_forecast.h"

#include <stdatomic.h>

uint32_t wait_forecast_ns(const struct wait_forecast *forecast)
{
    uint32_t shortest = UINT32_MAX;

    for (unsigned i = 0; i < WAITS_KNOWN; i++) {
        uint32_t ns = atomic_load_explicit(&forecast->waits[i], memory_order_relaxed);
        if (ns < shortest)
            shortest = ns;
    }
    return shortest;
}

void wait_forecast_note(struct wait_forecast *forecast, uint64_t ns)
{
    uint32_t place = atomic_fetch_add_explicit(&forecast->count, 1, memory_order_relaxed);

    atomic_store_explicit(&forecast->waits[place % WAITS_KNOWN],
                          ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX, memory_order_relaxed);
}
