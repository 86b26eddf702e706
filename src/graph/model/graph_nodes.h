/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a program's graphs, by handle. All functions need the owner's lock. */
#pragma once

#include "graph_objects.h"

/* Shared by the calls about nodes. They take the work in any case. `data` may be NULL. */
CUresult graph_node_add(CUgraphNode *ret_handle, CUgraph handle, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *data, size_t count, struct graph_work *work);
CUresult graph_node_set(CUgraphNode handle, struct graph_work *work);

/* A node of that type, or NULL. */
struct graph_node *graph_node_of(CUgraphNode handle, CUgraphNodeType type);
