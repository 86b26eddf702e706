/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the daemon (control/server_protocol.h), and the daemon's orders. It is the main
 * thread's. */
#pragma once

#include "server_life.h"

/* Watches the daemon's socket: 0 or -errno. */
int daemon_link_start(struct server *server);

/* Handles what has come in so far, without waiting. */
void daemon_link_drain(struct server *server);
