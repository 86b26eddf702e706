/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heartbeat, and what it says: which client keeps others waiting. A call of the driver that
 * waits for all kernels makes the calls of other clients wait, too, and the watchdog as well, so
 * this belongs to the main thread, which makes no call that may wait.
 *
 * Twice a second it looks at the thread of each client. One that neither rests nor has taken
 * another command since the last time is still in the same call.
 */
#pragma once

#include "server.h"
#include "session.h"

/* Starts the timer: 0 or -errno. The main thread's, like the next. */
int stall_watch_start(struct server *server);

/* In which call the client's thread is, and in `ret_ms` since when; NULL when it was in none, or
 * in another one, the last time. */
const char *stall_call(const struct session *session, uint64_t *ret_ms);
