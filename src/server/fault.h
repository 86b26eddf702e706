/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults. A kernel that touches what it must not takes the whole context with it, and a context
 * that is lost can not be had back in the same process. So everybody is told, and this server ends;
 * the daemon starts a fresh one.
 */
#pragma once

#include "session.h"

/* Tells every client and the daemon, and ends the process. `witness` is the session whose call
 * showed it, perhaps NULL; that is seldom the culprit. */
void fault_raise(struct server *server, struct session *witness, CUresult result);

/* Starts the thread that looks after contexts while clients only wait. 0 or -errno. */
int fault_watch_start(struct server *server);
