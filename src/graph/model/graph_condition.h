/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes: a value that kernels set (cudaGraphSetConditional), and the node that looks at
 * it to choose which of its graphs runs. The value's handle is what kernels are given; who runs
 * graphs either lets kernels use it as it is, or puts another in its place.
 */
#pragma once

#include "graph_model.h"

#define CU_GRAPH_COND_ASSIGN_DEFAULT 1u

/* More graphs of one node than anybody writes down; it bounds what is sent of a node. */
#define GRAPH_BODIES_MAX 4096u

/* Shared by the graph that it was made for and the nodes that look at it, those of execs too. */
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
/* What a graph made goes with it, but for what nodes still look at. */
void graph_conditions_drop(struct graph *graph);

/* What a kernel says; nothing for a handle that is none. */
void graph_condition_set_locked(uint64_t handle, unsigned value);
/* A launch begins: the default is the value again, if it was to be. */
void graph_condition_begin_locked(struct graph_condition *condition);

/* The body that runs now, or conditional->size: none. */
unsigned graph_conditional_choice_locked(const struct graph_conditional *conditional);

/* The work of a new node of `graph`; the node says what its graphs are. */
CUresult graph_work_conditional(const struct graph *graph,
                                const CUDA_CONDITIONAL_NODE_PARAMS *params,
                                struct graph_work *ret_work);
CUresult graph_conditional_copy(const struct graph_conditional *conditional, bool named,
                                struct graph_conditional *ret_copy);
void graph_conditional_fini(struct graph_conditional *conditional);

/* A graph with such a node is instantiated once at a time, and neither copied nor a child. */
bool graph_has_conditional(const struct graph *graph);
/* Some handle, also of the graphs inside, is looked at by no node. */
bool graph_has_unused_condition(const struct graph *graph);
/* CUDA_ERROR_NOT_SUPPORTED where a conditional node's graph has a node of a kind that it must not
 * have, or a kernel of another context. */
CUresult graph_check_bodies(const struct graph *graph);
