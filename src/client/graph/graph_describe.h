/* SPDX-License-Identifier: Apache-2.0 */
/* Describing graphs to the server, node by node. `exec->owner` is its plan; only nodes that act are
 * described. */
#pragma once

#include "graph_model.h"
#include "graph_plan.h"

/* Describes node `index` to the server. */
CUresult exec_describe_node(const struct graph_exec *exec, uint32_t index);

/* Tells the server whether node `index` takes part. */
CUresult exec_describe_enabled(const struct graph_exec *exec, uint32_t index);

/* Makes one segment with the server, under its handle if it has one already. Waits for the server,
 * and returns the error of the graph. */
CUresult exec_describe_segment(const struct graph_exec *exec, uint32_t segment,
                               const struct plan_edge *edges, uint32_t edge_count);

/* Makes all segments. */
CUresult exec_describe(const struct graph_exec *exec, const struct plan_edge *edges,
                       uint32_t edge_count);
