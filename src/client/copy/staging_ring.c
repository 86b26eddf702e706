/* SPDX-License-Identifier: Apache-2.0 */
/* Which staging slot to take next; see staging_ring.h. */
#include "staging_ring.h"

#include <stddef.h>

static void take_slot(struct staging_ring *ring, unsigned slot)
{
    ring->taken[slot] = true;
    ring->next = (slot + 1) % ring->count;
}

bool staging_ring_take(struct staging_ring *ring, bool (*passed)(struct fence), unsigned *ret_slot,
                       bool *ret_must_wait)
{
    unsigned oldest = ring->count;

    for (unsigned i = 0; i < ring->count; i++) {
        unsigned slot = (ring->next + i) % ring->count;

        if (ring->taken[slot])
            continue;
        if (oldest == ring->count)
            oldest = slot;
        if (!ring->fenced[slot] || passed(ring->fence[slot])) {
            take_slot(ring, slot);
            *ret_slot = slot;
            *ret_must_wait = false;
            return true;
        }
    }
    if (oldest == ring->count)
        return false;
    take_slot(ring, oldest);
    *ret_slot = oldest;
    *ret_must_wait = true;
    return true;
}

void staging_ring_give(struct staging_ring *ring, unsigned slot, const struct fence *fence)
{
    ring->taken[slot] = false;
    ring->fenced[slot] = fence != NULL;
    if (fence)
        ring->fence[slot] = *fence;
}
