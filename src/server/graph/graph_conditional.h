/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes. All functions are the session thread's. */
#pragma once

#include "graph_state.h"

/* Describes a conditional node with its bodies. CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult graph_describe_conditional(struct graph *graph,
                                    const struct wire_fnGraphConditionalNode *in);
void graph_conditions_free(struct graph *graph);

/* CUDA_ERROR_NOT_SUPPORTED, with an error in the log, when no kernel has the handle of some value
 * as a parameter. A kernel might read the handle from memory, where the server cannot replace it.
 */
CUresult graph_check_conditions(struct graph *graph);

/* For the driver's new graph: makes the values, and a conditional node. */
CUresult graph_make_conditions(struct graph *graph);
CUresult graph_add_conditional(struct graph *graph, struct graph_node *node,
                               const CUgraphNode *before, size_t count);

/* The driver's graph of a node. */
CUgraph graph_driver_of(const struct graph *graph, const struct graph_node *node);

/* If the graph has such values, gives the launch a copy of its parameters with the driver's
 * handles. The caller frees the copy; NULL = there is none. */
CUresult graph_translate_params(const struct graph *graph, struct launch *launch, void **ret_copy);
