/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a program's graphs, by handle: shared by the calls about each kind of node. */
#include "graph_nodes.h"

#include "graph_kernel.h"
#include "graph_mem_ops.h"
#include "graph_memory.h"

static bool are_of_graph(const struct graph *graph, const CUgraphNode *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct graph_node *node = nodes ? graph_node_get(nodes[i]) : NULL;

        if (!node || node->graph != graph)
            return false;
    }
    return true;
}

CUresult graph_node_add(CUgraphNode *ret_handle, CUgraph handle, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *data, size_t count, struct graph_work *work)
{
    struct graph *graph = graph_get(handle);
    struct graph_node *node;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (graph && ret_handle && are_of_graph(graph, dependencies, count))
        result = graph_add(graph, true, work, &node);
    if (result) {
        graph_work_fini(work);
        return result;
    }
    for (size_t i = 0; !result && i < count; i++)
        result = graph_connect(graph_node_get(dependencies[i]), node, data ? &data[i] : NULL);
    if (result)
        graph_remove(node);
    else
        *ret_handle = graph_node_handle(node);
    return result;
}

struct graph_node *graph_node_of(CUgraphNode handle, CUgraphNodeType type)
{
    struct graph_node *node = graph_node_get(handle);

    return node && node->work.type == type ? node : NULL;
}

static void keep_arrays(struct graph_work *from, struct graph_work *to)
{
    if (to->type == CU_GRAPH_NODE_TYPE_KERNEL)
        graph_kernel_keep_arrays(&from->kernel, &to->kernel);
    else if (to->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        graph_mem_ops_keep_array(&from->mem_ops, &to->mem_ops);
}

/* A kernel keeps its attributes: separate calls set them. */
CUresult graph_node_set(CUgraphNode handle, struct graph_work *work)
{
    struct graph_node *node = graph_node_of(handle, work->type);
    bool loses_memory =
        node && work->type == CU_GRAPH_NODE_TYPE_GRAPH && graph_has_memory(node->work.child);
    CUresult result = node && !loses_memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (node && work->type == CU_GRAPH_NODE_TYPE_KERNEL)
        result = graph_kernel_copy_attributes(&work->kernel, &node->work.kernel);
    if (result) {
        graph_work_fini(work);
        return result;
    }
    keep_arrays(&node->work, work);
    graph_work_fini(&node->work);
    node->work = *work;
    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
        work->child->in = node;
    return CUDA_SUCCESS;
}
