/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs inside the model: creation, copies and destruction. All functions need the owner's lock.
 *
 * Objects of the program have handles; the copies inside an exec have none.
 */
#pragma once

#include "cleanup.h"
#include "graph_model.h"

enum graph_handle_type {
    GRAPH_HANDLE_GRAPH = 0x70, /* apart from the types of the owners' tables */
    GRAPH_HANDLE_NODE,
    GRAPH_HANDLE_EXEC,
    GRAPH_HANDLE_OBJECT,
    GRAPH_HANDLE_CONDITION,
};

/* Holds the owner's lock to the end of the scope. */
#define GRAPH_LOCKED _cleanup_mutex_ pthread_mutex_t *graph_held = mutex_hold(graph_backend.lock)

/* 0: no memory. */
uint64_t graph_handle_add(enum graph_handle_type type, void *object);
void *graph_handle_get(enum graph_handle_type type, const void *handle);
void graph_handle_remove(enum graph_handle_type type, uint64_t handle);

static inline struct graph *graph_get(CUgraph handle)
{
    return graph_handle_get(GRAPH_HANDLE_GRAPH, handle);
}

static inline struct graph_node *graph_node_get(CUgraphNode handle)
{
    return graph_handle_get(GRAPH_HANDLE_NODE, handle);
}

static inline CUgraphNode graph_node_handle(const struct graph_node *node)
{
    return (CUgraphNode)(uintptr_t)node->handle;
}

/* `named`: with handles, for the program. NULL: no memory. */
struct graph *graph_new(bool named);
void graph_free(struct graph *graph);
CUresult graph_copy(const struct graph *graph, bool named, struct graph **ret_graph);
/* Orders the nodes, dependencies first. Returns their number, without nodes in a cycle or behind
 * one. `ret_order` has the capacity for all nodes. */
unsigned graph_order(const struct graph *graph, struct graph_node **ret_order);
/* All nodes, with those of the graphs inside, in the order of exec->nodes, each with its index and
 * `in_body`. The caller frees the array. CUDA_ERROR_INVALID_VALUE for a cycle. */
CUresult graph_list_all(const struct graph *graph, struct graph_node ***ret_nodes,
                        unsigned *ret_count);

/* The node takes the work over, unless this fails. */
CUresult graph_add(struct graph *graph, bool named, struct graph_work *work,
                   struct graph_node **ret_node);
void graph_remove(struct graph_node *node);
/* `to` depends on `from`. INVALID_VALUE: it does already. */
CUresult graph_connect(struct graph_node *from, struct graph_node *to, const CUgraphEdgeData *data);
/* Find an edge, or NULL; remove one. */
const struct graph_edge *graph_edge_find(const struct graph_node *from,
                                         const struct graph_node *to);
void graph_disconnect(struct graph_node *from, struct graph_node *to);

/* Graphs that allocate or free memory can be neither copied nor changed, because the memory exists
 * once. */
bool graph_has_memory(const struct graph *graph);

/* User objects: a copy of a graph takes its own references; the second drops all references of a
 * graph. */
CUresult graph_keeps_copy(const struct graph_keeps *keeps, struct graph_keeps *to);
void graph_keeps_drop(struct graph_keeps *keeps);
/* An exec is about to be destroyed. Its user objects live until its launches are done. */
void graph_exec_let_go(struct graph_exec *exec);

/* Shared by the calls about nodes. They take the work in any case. `data` may be NULL. */
CUresult graph_node_add(CUgraphNode *ret_handle, CUgraph handle, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *data, size_t count, struct graph_work *work);
CUresult graph_node_set(CUgraphNode handle, struct graph_work *work);
/* A node of that type, or NULL. */
struct graph_node *graph_node_of(CUgraphNode handle, CUgraphNodeType type);

/* Copies of the caller's parameters, checked by the owner. */
CUresult graph_work_kernel(const CUDA_KERNEL_NODE_PARAMS *params, struct graph_work *ret_work);
CUresult graph_work_copy_box(const CUDA_MEMCPY3D *copy, CUcontext context,
                             struct graph_work *ret_work);
/* The address of a captured memset is checked only at the instantiation: libraries capture work
 * with made-up addresses to inspect its nodes. */
CUresult graph_work_captured_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context,
                                  struct graph_work *ret_work);
CUresult graph_work_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context,
                         struct graph_work *ret_work);
CUresult graph_work_host(const CUDA_HOST_NODE_PARAMS *host, struct graph_work *ret_work);
CUresult graph_work_child(const struct graph *child, struct graph_work *ret_work);
CUresult graph_work_event(CUgraphNodeType type, CUevent event, struct graph_work *ret_work);
CUresult graph_work_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
                            struct graph_work *ret_work);
CUresult graph_mem_ops_copy(unsigned count, const CUstreamBatchMemOpParams *ops,
                            struct graph_mem_ops *ret_copy);
CUresult graph_work_allocate(const CUDA_MEM_ALLOC_NODE_PARAMS *params, CUcontext context,
                             struct graph_work *ret_work);
CUresult graph_work_free(const struct graph *graph, CUdeviceptr address,
                         struct graph_work *ret_work);
/* Any kind but those two; CUDA_ERROR_NOT_SUPPORTED for a kind that Funnel does not have. */
CUresult graph_work_any(const CUgraphNodeParams *params, struct graph_work *ret_work);

/* The owner checks the work; work that it refuses is freed. */
CUresult graph_work_check(struct graph_work *work, struct graph_work *ret_work);

CUresult graph_work_copy(const struct graph_work *work, bool named, struct graph_work *ret_copy);
void graph_work_fini(struct graph_work *work);

/* Storage for so many parameters and a buffer of `size` bytes, all zero: false, no memory; then the
 * caller still ends the kernel. */
bool graph_kernel_allocate(struct graph_kernel *kernel, unsigned count, size_t size);
/* Points each element of `params` at its place in the buffer. */
void graph_kernel_point(struct graph_kernel *kernel);
CUresult graph_kernel_copy(const struct graph_kernel *kernel, struct graph_kernel *ret_copy);
void graph_kernel_fini(struct graph_kernel *kernel);
/* `to` replaces `from`, which the caller frees next. Programs keep the arrays that they received,
 * and set the node by them repeatedly. So the node keeps the arrays when their sizes match. */
void graph_kernel_keep_arrays(struct graph_kernel *from, struct graph_kernel *to);
void graph_mem_ops_keep_array(struct graph_mem_ops *from, struct graph_mem_ops *to);
/* Whether kernel nodes have this attribute: streams and launches have more. */
bool graph_kernel_knows_attribute(CUlaunchAttributeID id);
CUDA_KERNEL_NODE_PARAMS graph_kernel_params(const struct graph_work *work);
CUresult graph_kernel_set_attribute(struct graph_kernel *kernel, CUlaunchAttributeID id,
                                    const CUlaunchAttributeValue *value);
CUresult graph_kernel_copy_attributes(struct graph_kernel *to, const struct graph_kernel *from);
