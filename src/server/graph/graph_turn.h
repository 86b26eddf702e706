/* SPDX-License-Identifier: Apache-2.0 */
/* Serializes launches of graphs with conditional nodes. All functions are the session thread's. */
#pragma once

#include "graph_state.h"

/* Before a driver's graph with conditional nodes is made: begins a pause of graph batches, and
 * waits for launched ones. */
void graph_pause_batches(const struct graph *graph);

/* Launches a driver's graph with conditional nodes behind the last such launch in this context.
 * Returns the driver's result. */
CUresult graph_launch_in_turn(const struct graph *graph, const struct stream *stream);
