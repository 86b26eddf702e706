/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs on the software GPU.
 */
#pragma once

#include "graph_memory.h"
#include "graph_model.h"

struct context;
struct operation;
struct stream;

/* An operation that does the work; the caller owns the reference. `stream` is for kernels. */
CUresult graph_prepare_locked(const struct graph_work *work, const struct stream *stream,
                              bool own_priority, struct operation **ret_operation);

/* Nodes as graph_list_all() has them. */
struct node_list {
    struct graph_node **nodes;
    unsigned count;
    bool own_priority; /* kernels have theirs, not the stream's */
};

/* The operations of a node: the same one twice, but for a child graph, which is between them. */
struct steps {
    struct operation *first, *last;
};

/* The operations of all nodes but those inside of conditional nodes, none of which is begun; the
 * caller drops them. */
CUresult steps_prepare_locked(const struct node_list *list, const struct stream *stream,
                              struct steps **ret_steps);
/* NULL is allowed. */
void steps_drop_locked(const struct node_list *list, struct steps *steps);
/* Begins them behind `head`, which may be NULL. `tail`, which is held, comes behind them all. */
void steps_begin_locked(const struct node_list *list, struct context *context, struct steps *steps,
                        struct operation *head, struct operation *tail);

CUresult graph_exec_create_locked(struct graph_exec *exec);
void graph_exec_destroy_locked(struct graph_exec *exec);
void graph_later_locked(const struct graph_exec *after, CUhostFn function, void *user);
CUresult graph_exec_set_locked(struct graph_exec *exec, struct graph_node *node);
