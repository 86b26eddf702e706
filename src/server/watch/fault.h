/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults. A kernel with an invalid access destroys the whole context, and the process cannot
 * recover it. So this server informs every client and ends; the daemon starts a new one.
 */
#pragma once

#include "session.h"

/* The server's handler of fatal results: informs every client and the daemon, and ends the process.
 * `reporter` is the session whose call returned the result, or NULL; it is seldom the offender.
 * When another thread came first, the function returns only without a reporter. */
void fault_on_fatal(struct server *server, struct session *reporter, CUresult result);

/* Main thread: the daemon needs this failed server no longer. Its process ends when all is
 * reported. */
void fault_depart(void);
