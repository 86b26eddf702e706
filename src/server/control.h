/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking with the daemon (control/server_protocol.h). Main thread, except where said otherwise.
 */
#pragma once

#include "server.h"

/* Watches the daemon's socket: 0 or -errno. */
int control_start(struct server *server);

/* The server is ready for clients. */
void control_ready(struct server *server);

/* The server can not start. */
void control_failed(int control_fd, CUresult status, const char *text);

/* A client has attached, has gone, or was refused and never attached. */
void control_client_attached(struct server *server, const struct session *session);
void control_client_gone(struct server *server, const struct session *session);
void control_client_refused(struct server *server, int pid, CUresult status, const char *text);

/* So many clients have ended, and a kernel of one goes on; 0 = none does. */
void control_abandoned(struct server *server, unsigned clients);
