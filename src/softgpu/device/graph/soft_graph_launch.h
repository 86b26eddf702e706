/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs on the software GPU.
 */
#pragma once

#include "graph_memory.h"
#include "graph_model.h"

struct operation;
struct stream;

/* An operation that does the work; the caller owns the reference. `stream` is for kernels. */
CUresult graph_prepare_locked(const struct graph_work *work, const struct stream *stream,
                              bool own_priority, struct operation **ret_operation);

CUresult graph_exec_create_locked(struct graph_exec *exec);
void graph_exec_destroy_locked(struct graph_exec *exec);
void graph_later_locked(const struct graph_exec *after, CUhostFn function, void *user);
CUresult graph_exec_set_locked(struct graph_exec *exec, struct graph_node *node);
