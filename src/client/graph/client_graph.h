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

/* The state of a node besides its place. */
struct plan_state {
    uint64_t staging; /* pinned memory beside its pageable memory, or 0 */
    bool acts;        /* it does something in its segment */
    bool disabled;    /* and the server knows that it does not take part */
};

/* What the client keeps for a launchable graph. Node i is exec->nodes[i]. All functions here are
 * called with client_graph_lock. */
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

/* The function of a kernel node in the node's context. CUDA_ERROR_INVALID_HANDLE or
 * CUDA_ERROR_INVALID_CONTEXT when either is gone. */
CUresult graph_node_function(const struct graph_work *work, struct function **ret_function);

/* The box of a copy node, and where its sides are; both are not written for a box of no bytes. */
CUresult graph_node_box(const struct graph_work *work, struct box *ret_box, enum place *ret_dst,
                        enum place *ret_src);

/* ---- exec_plan.c ---- */

/* Plans a graph and makes its segments with the server, whose error it returns; exec->owner is the
 * plan. */
CUresult exec_plan_create(struct graph_exec *exec);

/* Ends exec->owner; work that was launched goes on. */
void exec_plan_destroy(struct graph_exec *exec);

/* Has a function called behind the last launch of `after`, by the thread of host functions. `after`
 * may be NULL: nothing is waited for. */
void exec_later(const struct graph_exec *after, CUhostFn function, void *user);

/* Makes the segment of that handle again, with another server. With the library closed. */
CUresult exec_replay(struct exec_plan *plan, uint64_t segment);

/* A node does something else now, takes part or does not. May plan the whole graph anew. */
CUresult exec_plan_set(struct graph_exec *exec, struct graph_node *node);

/* ---- graph_blocks.c ---- */

/* Takes and gives back the block of an allocation node. CUDA_ERROR_OUT_OF_MEMORY,
 * CUDA_ERROR_INVALID_VALUE for a device that is not there. */
CUresult graph_memory_take(CUcontext given, struct graph_memory *memory);
void graph_memory_give(struct graph_memory *memory);

bool graph_device_exists(CUdevice device);

/* After a launch was put on its stream: its memory is used until the launch is done. */
void graph_memory_launched(const struct graph_exec *exec);

/* ---- graph_describe.c: for nodes that act ---- */

/* Describes node `index` to the server. */
CUresult exec_describe_node(const struct graph_exec *exec, uint32_t index);

/* Tells the server whether node `index` takes part. */
CUresult exec_describe_enabled(const struct graph_exec *exec, uint32_t index);

/* Makes one segment with the server, under its handle if it has one already. Waits for the server,
 * and returns what was wrong with the graph. */
CUresult exec_describe_segment(const struct graph_exec *exec, uint32_t segment,
                               const struct plan_edge *edges, uint32_t edge_count);

/* Makes all segments. */
CUresult exec_describe(const struct graph_exec *exec, const struct plan_edge *edges,
                       uint32_t edge_count);
