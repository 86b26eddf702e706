/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults. A kernel that accesses memory that it must not takes the whole context with it, and a
 * lost context cannot be recovered in the same process. So every client is told, and this server
 * ends; the daemon starts a new one.
 */
#pragma once

#include "session.h"

/* The server's handler of fatal results: tells every client and the daemon, and ends the process.
 * `reporter` is the session whose call returned the result, or NULL; it is seldom the offender.
 * Where another thread has been here before, this returns without a reporter and never with one. */
void fault_on_fatal(struct server *server, struct session *reporter, CUresult result);

/* Main thread: the daemon says that nobody waits any more for this server, which has met a fault.
 * Its process ends when everything has been reported. */
void fault_depart(void);
