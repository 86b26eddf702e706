/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of a client: work that is described once and launched as a whole repeatedly.
 *
 * The client keeps the graphs that its program builds and captures. For an instantiation it sends
 * the server a description. The server checks each node and keeps the description. It rebuilds the
 * driver's graph when the client's priority changes, and launches node by node for a client with an
 * SM share.
 *
 * All functions are the session thread's.
 */
#pragma once

#include "server.h"
#include "session.h"

struct function;
struct stream;

/* A node's work on the device. */
struct graph_node_work {
    unsigned kind;                   /* enum trace_kind */
    const struct function *function; /* of a kernel */
    uint32_t shared_bytes, value;
    uint32_t grid[3], block[3];
    uint64_t to, from, bytes;
    uint64_t graph; /* the client's handle */
    uint32_t node;  /* number in the graph */
};

/* Called around each node of a launch. */
struct graph_timer {
    void (*before)(void *context, struct stream *stream, const struct graph_node_work *work);
    void (*after)(void *context);
    void *context;
};

/* Launches graphs node by node from now on, except those with conditional nodes. The caller keeps
 * the timer, until it sets NULL. */
void session_graphs_time(struct session *session, const struct graph_timer *timer);

/* Ends all graphs of a client, whose work is done. */
void graphs_destroy_all(struct session *session);

/* The same for a client that goes on: the handles of its graphs become free. */
void graphs_forget_all(struct session *session);

/* The graph subsystem's part of the server and of a session. The server's modules are initialized.
 * 0 or -ENOMEM. */
int server_graphs_init(struct server *server);
void server_graphs_fini(struct server *server);
int session_graphs_init(struct session *session);
void session_graphs_fini(struct session *session);
