/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging slots: 1 MiB chunks of memory that the GPU reaches, through which copies of pageable
 * memory go. A slot is its taker's until it is given back with a fence, and somebody else's when
 * that fence has passed.
 */
#ifndef FUNNEL_STAGING_H
#define FUNNEL_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "client_fence.h"

#define STAGING_SLOTS_MAX 64u

/* The bookkeeping, without locks and waiting. */
struct staging_ring {
    unsigned count;
    unsigned next; /* the one that was given back longest ago, or near it */
    bool taken[STAGING_SLOTS_MAX];
    bool fenced[STAGING_SLOTS_MAX]; /* `fence` says when it may be overwritten */
    struct fence fence[STAGING_SLOTS_MAX];
};

/* Takes a slot, one that is ready if there is any: false when all are taken. The taker has to wait
 * for its fence if ret_must_wait says so. */
bool staging_ring_take(struct staging_ring *ring, bool (*passed)(struct fence), unsigned *ret_slot,
                       bool *ret_must_wait);

/* `fence` may be NULL: nothing on the device uses the slot. */
void staging_ring_give(struct staging_ring *ring, unsigned slot, const struct fence *fence);

/* ---- the client's one ring ---- */

void staging_init(void);

/* A slot that may be written, however long that takes. */
CUresult staging_take(unsigned *ret_slot);

/* Only if that needs no waiting. */
bool staging_try_take(unsigned *ret_slot);

void staging_give(unsigned slot, const struct fence *fence);

/* Its address, for the program and for the GPU. */
uint64_t staging_address(unsigned slot);

#endif
