/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs: making them, and changing what they do without changing their shape. Called
 * with the owner's lock held.
 */
#pragma once

#include "graph_objects.h"

/* Makes the exec, which is zeroed but for its flags, a copy of the graph. When this fails, the
 * caller frees it. */
CUresult graph_exec_fill(struct graph_exec *exec, const struct graph *graph);
/* NULL is allowed. */
void graph_exec_free(struct graph_exec *exec);

/* The copy of a node that is still in the graph that the exec was made of; or NULL, also when the
 * exec is. */
struct graph_node *graph_exec_clone(const struct graph_exec *exec, CUgraphNode handle);

/* Sets the clone of a node. Takes the work in any case; a kernel keeps its attributes. */
CUresult graph_exec_node_set(CUgraphExec exec_handle, CUgraphNode handle, struct graph_work *work);

/* Whether a node of an exec that does `work` can be set to `next`, which is of the same type. */
bool graph_work_can_become(const struct graph_work *work, const struct graph_work *next);

/* Takes the work in any case; when this fails, nothing has changed. */
CUresult graph_exec_set(struct graph_exec *exec, struct graph_node *node, struct graph_work *work);

/* Lets `mine`, which is in the exec, do what `graph` does. All is compared before anything is
 * changed. */
CUresult graph_exec_update(struct graph_exec *exec, const struct graph *mine,
                           const struct graph *graph, CUgraphExecUpdateResultInfo *ret_info);
