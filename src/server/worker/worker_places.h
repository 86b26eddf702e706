/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which session is with which worker of the pool. Workers differ: one shares its CPU with a
 * program, and nine sessions cannot be divided by four. So sessions change places, and over some
 * tenths of a second each has had as many turns as any other.
 */
#pragma once

#include <stdbool.h>

#include "pool_share.h"

/* A session that a worker serves. */
struct worker_place {
    void *session;
    uint64_t turns;  /* it has had so many lately, with whatever worker */
    unsigned worker; /* that it is with, or shall be with */
};

/* Whether sessions differ by so many turns that they should change places. */
bool worker_places_differ(const struct worker_place *places, unsigned count);

/* Gives each session a worker. Those with the fewest turns get the worker that makes the most for
 * each session. Orders `places`. The shares add up to `count`. */
void worker_places_assign(struct worker_place *places, unsigned count,
                          const struct pool_room *rooms, unsigned workers);
