/* SPDX-License-Identifier: Apache-2.0 */
/* Which staging slot to take next: the bookkeeping, without locks and waiting. */
#pragma once

#include <stdbool.h>

#include "client_fence.h"

#define STAGING_SLOTS_MAX 64u

struct staging_ring {
    unsigned count;
    unsigned next; /* roughly the one that was given back longest ago */
    bool taken[STAGING_SLOTS_MAX];
    bool fenced[STAGING_SLOTS_MAX]; /* `fence` says when it may be overwritten */
    struct fence fence[STAGING_SLOTS_MAX];
};

/* Takes a slot, one whose fence has passed if there is any: false when all are taken. With
 * *ret_must_wait the caller has to wait for the slot's fence first. */
bool staging_ring_take(struct staging_ring *ring, bool (*passed)(struct fence), unsigned *ret_slot,
                       bool *ret_must_wait);

/* `fence` may be NULL: nothing on the device uses the slot. */
void staging_ring_give(struct staging_ring *ring, unsigned slot, const struct fence *fence);
