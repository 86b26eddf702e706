/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs on their way to the server: the segments of each (graph_plan.h), and the steps
 * that the client takes between them.
 */
#pragma once

#include "client_copy.h"
#include "client_fence.h"
#include "client_library.h"
#include "client_memory.h"
#include "cuda_graph.h"
#include "graph_model.h"
#include "graph_plan.h"

/* What is known of a node besides its place. */
struct plan_state {
    uint64_t staging; /* pinned memory beside its pageable memory, or 0 */
    bool acts;        /* it does something in its segment */
    bool disabled;    /* and the server knows that it shall not */
};

/* What the client keeps of an exec. Node i is exec->nodes[i]. */
struct exec_plan {
    const struct graph_exec *exec; /* whose it is */
    struct device *device;
    struct context *context;
    struct plan_node *nodes;
    struct plan_state *states; /* as many */
    uint32_t node_count;
    uint32_t phase_count;
    uint64_t *segments; /* of each phase: its handle, or 0 when nothing is there to be done */
    uint32_t *steps;    /* nodes in the order of their steps */
    uint32_t step_count;
    CUevent behind; /* recorded behind the last launch, where something may have to wait for that */
};

/* ---- graph_backend.c ---- */

/* The function of a kernel node, as it is called in the node's context. */
CUresult graph_node_function(const struct graph_work *work, struct function **ret_function);

/* A copy node as a box, and where its sides are. A box of no bytes is left alone. */
CUresult graph_node_box(const struct graph_work *work, struct box *ret_box, enum place *ret_dst,
                        enum place *ret_src);

/* ---- exec_plan.c ---- */

CUresult exec_plan_create(struct graph_exec *exec);
void exec_plan_destroy(struct graph_exec *exec);

/* Has the runner of host functions call it behind the last launch of `after`, which may be NULL. */
void exec_later(const struct graph_exec *after, CUhostFn function, void *user);

/* Has the segment of that handle made again, by another server. */
CUresult exec_replay(struct exec_plan *plan, uint64_t segment);

/* A node does something else now, or takes part or not. */
CUresult exec_plan_set(struct graph_exec *exec, struct graph_node *node);

/* ---- graph_blocks.c ---- */

CUresult graph_memory_take(CUcontext given, struct graph_memory *memory);
void graph_memory_give(struct graph_memory *memory);
bool graph_device_exists(CUdevice device);
/* Behind a launch that has been put on its stream. */
void graph_memory_launched(const struct graph_exec *exec);

/* ---- graph_describe.c: for nodes that act ---- */

/* Describes node `index` to the server. */
CUresult exec_describe_node(const struct graph_exec *exec, uint32_t index);

/* Tells the server whether node `index` takes part. */
CUresult exec_describe_enabled(const struct graph_exec *exec, uint32_t index);

/* Has one segment made, under its handle if it has one already. */
CUresult exec_describe_segment(const struct graph_exec *exec, uint32_t segment,
                               const struct plan_edge *edges, uint32_t edge_count);

/* Has all segments made. */
CUresult exec_describe(const struct graph_exec *exec, const struct plan_edge *edges,
                       uint32_t edge_count);
