/* SPDX-License-Identifier: Apache-2.0 */
/* The server's messages to its daemon (control/server_protocol.h). They are the main thread's,
 * except where a comment says otherwise. */
#pragma once

#include "server_life.h"

/* Sends a message, which begins with its header. A server without daemon sends nothing. */
void daemon_report_send(const struct server *server, const void *message);

/* The server is ready for clients. */
void daemon_report_ready(struct server *server);

/* The server cannot start, for the reason in `text`. */
void daemon_report_failed(int control_fd, CUresult status, const char *text);

/* The answer to a request: a CUresult, or what the request says. */
void daemon_report_result(struct server *server, uint32_t request, int status);

/* A client has attached, has gone, or was refused and never attached. */
void daemon_report_client_attached(struct server *server, const struct session *session);
void daemon_report_client_gone(struct server *server, const struct session *session);
void daemon_report_client_refused(struct server *server, uint32_t id, CUresult status,
                                  const char *text);

/* The client asks for a move to another lane. */
void daemon_report_move_wish(struct server *server, const struct session *session, uint32_t target);

/* Answers an order to move the client to another lane. The client stays, or it has ended, by moving
 * or otherwise. Without an order the second sends nothing. */
void daemon_report_client_stays(struct server *server, uint32_t request, uint32_t obstacle);
void daemon_report_move_ends(struct server *server, const struct session *session);

/* The server ends and still has clients. It reports each as gone with `status`, so that the daemon
 * can account for its usage. Any thread; the sessions must not change meanwhile. */
void daemon_report_clients_lost(struct server *server, CUresult status);

/* Reports the usage of the clients that were active since the last report. */
void daemon_report_usage(struct server *server);

void daemon_report_heartbeat(struct server *server, const struct server_heartbeat *heartbeat);

/* Reports how many clients have ended while a kernel of one still runs. Also reports whether
 * kernels have used a heap that only the end of the server empties. */
void daemon_report_abandoned(struct server *server);

/* The daemon has accounted for a client that has gone. */
void daemon_report_noted(struct server *server, uint32_t id);

/* Tells the next daemon of all clients, and of those that have gone unnoted. */
void daemon_report_all_clients(struct server *server);
