/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked host memory. To lock memory is cheap, to unlock it stalls every client of the
 * context. So memory that is given back stays locked in its window and serves the same client when
 * it asks again. No other client gets it.
 */
#pragma once

#include "memory.h"

/* Counts page-locked memory against what the client may have of it, and all of them together:
 * false, and an error in the log, when that would exceed it. The second gives it back. */
bool host_memory_charge(struct session *session, uint64_t size);
void host_memory_refund(struct session *session, uint64_t size);

/* Takes back a granule, which the window frees. */
void host_memory_retire(struct session *session, struct granule *granule);

/* On the session's thread: waits for a calm moment and unlocks the memory of some windows of
 * clients that have gone. False when the session is to end, or a stream waits for a value for too
 * long. */
bool host_memory_trim_windows(struct session *session);

/* Unlocks all that a window keeps for later. Called between quiesce_begin() and quiesce_end(). */
void host_memory_drop_idle(struct window *window);

/* The client is gone: nobody will be sent a descriptor of what its window keeps. */
void host_memory_close_idle(struct window *window);
