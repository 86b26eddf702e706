/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's event loop: its listening socket, its signals, and how it ends. */
#pragma once

#include "daemon.h"

/* Runs until the daemon has quit, with an open instance and journal. Returns the exit status. When
 * programs can connect, one NUL is written to `ready_fd`, and when the daemon cannot start, its
 * reason (-1 = no process waits for it). */
int daemon_run(struct daemon *daemon, int ready_fd);
