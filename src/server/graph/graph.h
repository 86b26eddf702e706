/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of a client: work that is described once and launched as a whole, many times.
 *
 * The client keeps the graphs that its program builds and captures; the server gets the description
 * of a graph that is to be instantiated. It checks the description node by node and keeps it,
 * because it builds the driver's graph again when the client's priority has changed, and launches
 * the nodes one by one for a client that may use only some of the multiprocessors.
 *
 * All functions are the session thread's.
 */
#pragma once

#include "server.h"
#include "session.h"

/* Ends all graphs of a client, whose work is done. */
void graphs_destroy_all(struct session *session);

/* The same, where the client goes on: the handles of its graphs are free again. */
void graphs_forget_all(struct session *session);

/* The graph subsystem's part of the server, whose modules are initialized, and of a session. 0 or
 * -ENOMEM. */
int server_graphs_init(struct server *server);
void server_graphs_fini(struct server *server);
int session_graphs_init(struct session *session);
void session_graphs_fini(struct session *session);
