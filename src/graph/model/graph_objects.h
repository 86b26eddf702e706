/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs inside the model: creation, copies and destruction. All functions need the owner's lock.
 *
 * Objects of the program have handles; the copies inside an exec have none.
 */
#pragma once

#include "cleanup.h"
#include "graph_handles.h"
#include "graph_model.h"

/* Holds the owner's lock to the end of the scope. */
static inline pthread_mutex_t *graph_hold(pthread_mutex_t *lock)
{
    return pthread_mutex_trylock(lock) ? graph_backend.hold(lock) : lock;
}

#define GRAPH_LOCKED _cleanup_mutex_ pthread_mutex_t *graph_held = graph_hold(graph_backend.lock)

static inline struct graph *graph_get(CUgraph handle)
{
    return graph_handle_get(GRAPH_HANDLE_GRAPH, handle);
}

static inline struct graph_node *graph_node_get(CUgraphNode handle)
{
    return graph_handle_get(GRAPH_HANDLE_NODE, handle);
}

static inline CUgraphNode graph_node_handle(const struct graph_node *node)
{
    return (CUgraphNode)(uintptr_t)node->handle;
}

/* `named`: with handles, for the program. NULL: no memory. */
struct graph *graph_new(bool named);
void graph_free(struct graph *graph);
CUresult graph_copy(const struct graph *graph, bool named, struct graph **ret_graph);
/* Orders the nodes, dependencies first. Returns their number, without nodes in a cycle or behind
 * one. `ret_order` has the capacity for all nodes. */
unsigned graph_order(const struct graph *graph, struct graph_node **ret_order);
/* All nodes, with those of the graphs inside, in the order of exec->nodes, each with its index and
 * `in_body`. The caller frees the array. CUDA_ERROR_INVALID_VALUE for a cycle. */
CUresult graph_list_all(const struct graph *graph, struct graph_node ***ret_nodes,
                        unsigned *ret_count);

/* The node takes the work over, unless this fails. */
CUresult graph_add(struct graph *graph, bool named, struct graph_work *work,
                   struct graph_node **ret_node);
void graph_remove(struct graph_node *node);
/* `to` depends on `from`. INVALID_VALUE: it does already. */
CUresult graph_connect(struct graph_node *from, struct graph_node *to, const CUgraphEdgeData *data);
/* Find an edge, or NULL; remove one. */
const struct graph_edge *graph_edge_find(const struct graph_node *from,
                                         const struct graph_node *to);
void graph_disconnect(struct graph_node *from, struct graph_node *to);

CUresult graph_work_copy(const struct graph_work *work, bool named, struct graph_work *ret_copy);
void graph_work_fini(struct graph_work *work);
