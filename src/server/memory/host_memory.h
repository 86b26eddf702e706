/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked host memory. Locking is cheap, but unlocking stalls every client of the context. So
 * released memory stays locked in its window for the next request of the same client. No other
 * client gets it.
 */
#pragma once

#include "memory.h"

/* Charges page-locked memory against the limits of the client and of all clients: false, with an
 * error in the log, beyond a limit. The second refunds it. */
bool host_memory_charge(struct session *session, uint64_t size);
void host_memory_refund(struct session *session, uint64_t size);

/* Takes back a granule, which the window frees. */
void host_memory_retire(struct session *session, struct granule *granule);

/* On the session's thread: waits for an idle point and unlocks the memory of some windows of
 * departed clients. False when the session is about to end, or a stream waits for a value for too
 * long. */
bool host_memory_trim_windows(struct session *session);

/* Unlocks all idle memory of a window. Called between gate_close() and gate_open(). */
void host_memory_drop_idle(struct window *window);

/* The client is gone: closes the descriptors of its window's idle memory. */
void host_memory_close_idle(struct window *window);
