/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs on the software GPU.
 */
#pragma once

#include "graph_memory.h"
#include "graph_model.h"

struct operation;
struct stream;

/* An operation that does the work, for whoever holds the reference. `stream` is for kernels. */
CUresult graph_prepare_locked(const struct graph_work *work, const struct stream *stream,
                              bool own_priority, struct operation **ret_operation);

CUresult graph_exec_create_locked(struct graph_exec *exec);
void graph_exec_destroy_locked(struct graph_exec *exec);
void graph_later_locked(const struct graph_exec *after, CUhostFn function, void *user);
CUresult graph_exec_set_locked(struct graph_exec *exec, struct graph_node *node);

/* ---- graph_pool.c ---- */

CUresult graph_memory_take_locked(CUcontext given, struct graph_memory *memory);
void graph_memory_give_locked(struct graph_memory *memory);
bool graph_device_exists(CUdevice device);
/* Not given back before the operation has finished. */
void graph_memory_behind_locked(struct graph_memory *memory, struct operation *operation);
/* cuMemFreeAsync of what a graph allocated. */
CUresult graph_memory_free_async_locked(struct graph_memory *memory, struct stream *stream);
