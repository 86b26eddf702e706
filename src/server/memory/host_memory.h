/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked host memory. Locking is cheap, unlocking stalls every client of the context; so
 * memory that is given back stays locked in its window and serves the next that asks there.
 */
#pragma once

#include "memory.h"

/* Takes back a granule that was allocated with malloc. */
void host_memory_retire(struct session *session, struct granule *granule);

/* Unlocks what a window keeps for later. Called between quiesce_begin() and quiesce_end(). */
void host_memory_drop_idle(struct window *window);
