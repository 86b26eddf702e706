/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heartbeat reports the client that blocks others. While the driver's call of one client waits
 * for all kernels, calls of other clients wait, too, and so does the watchdog. So the heartbeat
 * runs on the main thread, which makes no call that may wait. It also says whether kernels are
 * long; the watchdog hurries it when one is.
 *
 * Twice a second it samples the thread of each client. A thread that neither waits for commands nor
 * has taken another command since the last sample is still in the same call.
 */
#pragma once

#include "server.h"
#include "session.h"

/* Starts the timer: 0 or -errno. The main thread's. */
int stall_watch_start(struct server *server);

/* From any thread: the next heartbeat comes now, and the others count from it. */
void stall_watch_hurry(const struct server *server);

/* The main thread: the present call of the client's thread, and its duration in `ret_ms`; NULL when
 * the last sample saw no call, or another one. */
const char *stall_call(const struct session *session, uint64_t *ret_ms);
