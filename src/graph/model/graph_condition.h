/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes: kernels set a value (cudaGraphSetConditional), and the node reads it to choose
 * the graph that runs. Kernels get a handle of the value. The owner passes the handle on, or
 * replaces it by one of its own.
 */
#pragma once

#include "graph_model.h"

#define CU_GRAPH_COND_ASSIGN_DEFAULT 1u

/* Bounds the message about a node. No program has as many bodies in one node. */
#define GRAPH_BODIES_MAX 4096u

/* Shared by its graph and by the nodes that read it, also those of execs. */
struct graph_condition {
    uint64_t handle;
    uint64_t home; /* the graph */
    CUcontext context;
    unsigned default_value, flags;
    unsigned value;
    unsigned references;
    unsigned nodes; /* of the program's graphs */
};

CUresult graph_condition_create(struct graph *graph, CUcontext context, unsigned default_value,
                                unsigned flags, struct graph_condition **ret_condition);
void graph_condition_ref(struct graph_condition *condition);
/* NULL is allowed. */
void graph_condition_unref(struct graph_condition *condition);
/* Drops the conditions of a graph that ends. A condition lives on while a node reads it. */
void graph_conditions_drop(struct graph *graph);

/* A kernel sets the value. An invalid handle has no effect. */
void graph_condition_set_locked(uint64_t handle, unsigned value);
/* A launch begins: the value becomes the default, where the program asked for that. */
void graph_condition_begin_locked(struct graph_condition *condition);

/* The index of the body that runs now; conditional->size = none. */
unsigned graph_conditional_choice_locked(const struct graph_conditional *conditional);

/* The work of a new conditional node of `graph`. */
CUresult graph_work_conditional(const struct graph *graph,
                                const CUDA_CONDITIONAL_NODE_PARAMS *params,
                                struct graph_work *ret_work);
CUresult graph_conditional_copy(const struct graph_conditional *conditional, bool named,
                                struct graph_conditional *ret_copy);
void graph_conditional_fini(struct graph_conditional *conditional);

/* A graph with such a node has at most one exec at a time. It can be neither copied nor a child. */
bool graph_has_conditional(const struct graph *graph);
/* Whether no node reads some handle of the graph, or of the graphs inside. */
bool graph_has_unused_condition(const struct graph *graph);
/* CUDA_ERROR_NOT_SUPPORTED where a conditional node's graph has a node of a kind that it must not
 * have, or a kernel of another context. */
CUresult graph_check_bodies(const struct graph *graph);
