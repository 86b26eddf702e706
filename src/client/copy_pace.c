/* SPDX-License-Identifier: Apache-2.0 */
/* A score that goes up with every copy that came late and down with every other. */
#include "copy_pace.h"

#include "clock.h"
#include "switch.h"

#define SCORE_MAX 4

/* Measured on an H200: a copy of pinned memory moves 54 GB/s, and 10 us are lost around it. */
#define BYTES_PER_US 50000u
#define START_NS (10 * NS_PER_US)

static int score; /* atomic */

static bool is_late(uint64_t piece_bytes, uint64_t waited_ns)
{
    uint64_t alone = piece_bytes * NS_PER_US / BYTES_PER_US + START_NS;

    return waited_ns > 2 * alone + START_NS;
}

void copy_pace_note(uint64_t piece_bytes, uint64_t waited_ns)
{
    int now = __atomic_load_n(&score, __ATOMIC_RELAXED);
    int next = is_late(piece_bytes, waited_ns) ? now + 1 : now - 1;

    if (next >= -SCORE_MAX && next <= SCORE_MAX)
        __atomic_store_n(&score, next, __ATOMIC_RELAXED);
}

static bool is_switched_off(void)
{
    static int known;

    return switch_is_on_once(&known, "FUNNEL_NO_COPY_PACE");
}

bool copy_pace_is_crowded(void)
{
    return __atomic_load_n(&score, __ATOMIC_RELAXED) > 0 && !is_switched_off();
}
