/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a graph without the driver's graph. Session thread. */
#pragma once

#include "graph_state.h"

/* Submits the nodes to a stream one by one, where the driver's graph cannot be used, or each node
 * is timed. Returns the driver's result for the first node that fails. */
CUresult graph_replay(const struct graph *graph, struct stream *stream);
