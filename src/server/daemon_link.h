/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the daemon (control/server_protocol.h). It is the main thread's, except where a
 * comment says otherwise. */
#pragma once

#include "server_life.h"

/* Watches the daemon's socket: 0 or -errno. */
int daemon_link_start(struct server *server);

/* Handles what has come in so far, without waiting. */
void daemon_link_drain(struct server *server);

/* The server is ready for clients. */
void daemon_link_ready(struct server *server);

/* The server cannot start, for the reason in `text`. */
void daemon_link_failed(int control_fd, CUresult status, const char *text);

/* The answer to a request: a CUresult, or what the request says. */
void daemon_link_answer(struct server *server, uint32_t request, int status);

/* A client has attached, has gone, or was refused and never attached. */
void daemon_link_client_attached(struct server *server, const struct session *session);
void daemon_link_client_gone(struct server *server, const struct session *session);
void daemon_link_client_refused(struct server *server, uint32_t id, CUresult status,
                                const char *text);

/* An order to move the client to another lane is answered: it stays; or it has ended, by moving or
 * otherwise, and then nothing is sent where there was no order. */
void daemon_link_client_stays(struct server *server, uint32_t request, uint32_t obstacle);
void daemon_link_move_ends(struct server *server, const struct session *session);

/* The server ends and still has clients. It reports each as gone with `status`, so that the daemon
 * can account for its usage. Any thread; the sessions must not change meanwhile. */
void daemon_link_clients_lost(struct server *server, CUresult status);

/* Reports the usage of the clients that were active since the last report. */
void daemon_link_usage(struct server *server);

void daemon_link_heartbeat(struct server *server, const struct server_heartbeat *heartbeat);

/* Reports how many clients have ended while a kernel of one still runs, and whether kernels have
 * used a heap that only the end of the server empties. */
void daemon_link_abandoned(struct server *server);
