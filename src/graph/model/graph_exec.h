/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs: creation, and updates that keep the shape. All functions need the owner's
 * lock.
 */
#pragma once

#include "graph_objects.h"

/* Makes the exec a copy of the graph. All its fields but the flags are zero. After an error the
 * caller frees it. */
CUresult graph_exec_fill(struct graph_exec *exec, const struct graph *graph);
/* NULL is allowed. */
void graph_exec_free(struct graph_exec *exec);

/* The clone of a node of the graph that the exec was made from; NULL when there is none, or the
 * exec is NULL. */
struct graph_node *graph_exec_clone(const struct graph_exec *exec, CUgraphNode handle);

/* Sets the clone of a node. Takes the work in any case; a kernel keeps its attributes. */
CUresult graph_exec_node_set(CUgraphExec exec_handle, CUgraphNode handle, struct graph_work *work);

/* Whether an exec's node with `work` can be set to `next`, which has the same type. */
bool graph_work_can_become(const struct graph_work *work, const struct graph_work *next);

/* Takes the work in any case; when this fails, nothing has changed. */
CUresult graph_exec_set(struct graph_exec *exec, struct graph_node *node, struct graph_work *work);

/* Updates `mine`, a graph of the exec, from `graph`. It compares all nodes before it changes one.
 */
CUresult graph_exec_update(struct graph_exec *exec, const struct graph *mine,
                           const struct graph *graph, CUgraphExecUpdateResultInfo *ret_info);
