/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the daemon ends. It refuses programs from then on. Servers end when their last client leaves,
 * or by force after a timeout; then the daemon leaves its loop. Front ends are served until the
 * very end, so that they can see what is still waited for, and shorten the wait.
 */
#pragma once

#include "daemon.h"

struct console;

/* Begins to quit. Servers are ended by force after `timeout_s` (-1 = never); a further call can
 * only shorten that time. `quitter` (or NULL) is answered when the daemon ends. */
void daemon_quit(struct daemon *daemon, int timeout_s, struct console *quitter);

/* For the loop: the timer's callback, and what follows when a server has ended. */
void daemon_quit_on_timeout(evutil_socket_t fd, short what, void *daemon);
void daemon_quit_server_reaped(struct daemon *daemon);

/* Behind the loop: gives up the pipe directory, and answers those who have asked the daemon to end.
 * What the daemon keeps in that directory has been removed, since the next one may start now. */
void daemon_quit_finish(struct daemon *daemon);
