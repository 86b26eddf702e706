/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the driver's graph from a description. All functions are the session thread's. */
#pragma once

#include "graph_state.h"

/* Builds the driver's graph, unless it exists and has the client's present priority. The device's
 * context is current. Returns the driver's result, CUDA_ERROR_NOT_SUPPORTED for a driver without
 * graphs, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult graph_prepare(struct graph *graph);

/* Sets a node of the driver's graph to its description. Returns the driver's result. */
CUresult graph_update_node(const struct graph *graph, const struct graph_node *node);
