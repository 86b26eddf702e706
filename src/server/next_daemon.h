/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server without its daemon, which has died. It serves the clients that it has, and waits for
 * the next daemon at the listening socket that it was started with. All of it is the main thread's.
 */
#pragma once

#include <sys/types.h>

struct server;

/* Watches the listening socket SERVER_RETURN_FD, where there is one. `daemon_uid` is the user whose
 * daemons may connect. 0 or -errno. */
int next_daemon_watch(struct server *server, uid_t daemon_uid);

/* The daemon's connection has closed. The server leaves if no other daemon can connect. */
void next_daemon_await(struct server *server);
