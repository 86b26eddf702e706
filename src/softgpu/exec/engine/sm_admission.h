/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of blocks onto the virtual SMs and off them. Among grids the more urgent comes first;
 * equals take turns. A cooperative grid comes to the SMs as a whole.
 *
 * The caller is the SM's worker, and holds the engine's lock, which is released meanwhile.
 */
#pragma once

#include "engine_state.h"

/* Brings one more cluster onto the SM; NULL when there is none for it. */
struct block *sm_admit_locked(struct worker *worker, struct sm *sm);

/* Takes the cluster at that place, which has ended, off the SM. */
void sm_retire_locked(struct worker *worker, struct sm *sm, unsigned at);
