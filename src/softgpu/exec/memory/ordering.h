/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses that other host threads may be waiting for, or that wait for theirs.
 */
#pragma once

#include "warp_state.h"

/* Of a budget counted in backward jumps. */
#define SYNCHRONIZING_COST 32

/* A spinning warp reads what others write: let the others run soon. */
static inline void warp_synchronizes(struct warp *warp)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    warp->budget -= SYNCHRONIZING_COST;
}
