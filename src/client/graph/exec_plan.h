/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs on their way to the server: the segments of each (graph_plan.h), and the steps
 * that the client takes between them. All functions of this folder are called with
 * client_graph_lock.
 */
#pragma once

#include "client_context.h"
#include "graph_model.h"
#include "graph_plan.h"

/* The state of a node besides its place. */
struct plan_state {
    uint64_t staging; /* pinned memory beside its pageable memory, or 0 */
    bool acts;        /* it does something in its segment */
    bool disabled;    /* and the server knows that it does not take part */
};

/* The client's state of a launchable graph. Node i is exec->nodes[i]. */
struct exec_plan {
    const struct graph_exec *exec; /* whose it is */
    struct device *device;
    struct context *context;
    struct plan_node *nodes;
    struct plan_state *states; /* as many */
    uint32_t node_count;
    uint32_t phase_count;
    uint64_t *segments; /* of each phase: its handle, or 0 for a phase without work */
    uint32_t *steps;    /* nodes in the order of their steps */
    uint32_t step_count;
    CUevent behind; /* recorded behind the last launch, where something may have to wait for that */
};

/* Plans a graph and makes its segments with the server, whose error it returns; exec->owner is the
 * plan. */
CUresult exec_plan_create(struct graph_exec *exec);

/* Ends exec->owner; work that was launched goes on. */
void exec_plan_destroy(struct graph_exec *exec);

/* Has a function called behind the last launch of `after`, by the thread of host functions. `after`
 * may be NULL: nothing is waited for. */
void exec_later(const struct graph_exec *after, CUhostFn function, void *user);

/* Makes the segment of that handle again, with another server. With the library closed, and without
 * that lock. */
CUresult exec_replay(struct exec_plan *plan, uint64_t segment);

/* The node of a launchable graph that a segment has by a number; `segment` is the low half of the
 * graph's handle. False when the segment has ended. Takes client_graph_lock. */
bool exec_find_node(uint32_t segment, uint32_t number, uint64_t *ret_exec, uint32_t *ret_index);

/* A node does something else now, takes part or does not. May plan the whole graph anew. */
CUresult exec_plan_set(struct graph_exec *exec, struct graph_node *node);
