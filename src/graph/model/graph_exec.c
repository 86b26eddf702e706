/* SPDX-License-Identifier: Apache-2.0 */
/* Launchable graphs: a copy that the program cannot reach into. */
#include "graph_exec.h"

#include <stdlib.h>

struct graph_exec *graph_exec_get(CUgraphExec handle)
{
    return graph_handle_get(GRAPH_HANDLE_EXEC, handle);
}

void graph_exec_free(struct graph_exec *exec)
{
    if (!exec)
        return;
    graph_handle_remove(GRAPH_HANDLE_EXEC, exec->handle);
    map_fini(&exec->clones);
    graph_free(exec->graph);
    free(exec->nodes);
    free(exec);
}

static unsigned count_nodes(const struct graph *graph)
{
    unsigned count = graph->count;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            count += count_nodes(node->work.child);
    }
    return count;
}

/* The rest of exec->nodes, in order. */
static CUresult number_nodes(struct graph_exec *exec, const struct graph *graph)
{
    _cleanup_free_ struct graph_node **order = calloc(graph->count + 1, sizeof(*order));
    CUresult result = CUDA_SUCCESS;

    if (!order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (graph_order(graph, order) != graph->count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !result && i < graph->count; i++) {
        struct graph_node *node = order[i];

        node->index = exec->count++;
        exec->nodes[node->index] = node;
        if (map_put(&exec->clones, node->original, node))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        else if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            result = number_nodes(exec, node->work.child);
    }
    return result;
}

CUresult graph_exec_fill(struct graph_exec *exec, const struct graph *graph)
{
    CUresult result = graph_copy(graph, false, &exec->graph);

    if (result)
        return result;
    exec->nodes = calloc(count_nodes(exec->graph) + 1, sizeof(struct graph_node *));
    if (!exec->nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = number_nodes(exec, exec->graph);
    if (result)
        return result;
    exec->handle = graph_handle_add(GRAPH_HANDLE_EXEC, exec);
    return exec->handle ? graph_backend.exec_create_locked(exec) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The copy of a node that is still in the graph that the exec was made of. */
struct graph_node *graph_exec_clone(const struct graph_exec *exec, CUgraphNode handle)
{
    const struct graph_node *original = graph_node_get(handle);

    return exec && original ? map_get(&exec->clones, original->handle) : NULL;
}

CUresult graph_exec_set(struct graph_exec *exec, struct graph_node *node, struct graph_work *work)
{
    struct graph_work old = node->work;

    node->work = *work;
    CUresult result = graph_backend.exec_set_locked(exec, node);
    if (result) {
        node->work = old;
        graph_work_fini(work);
    } else {
        graph_work_fini(&old);
    }
    return result;
}

CUresult graph_exec_node_set(CUgraphExec exec_handle, CUgraphNode handle, struct graph_work *work)
{
    struct graph_exec *exec = graph_exec_get(exec_handle);
    struct graph_node *node = graph_exec_clone(exec, handle);
    CUresult result = CUDA_SUCCESS;

    if (!node || node->work.type != work->type || node->work.context != work->context)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (work->type == CU_GRAPH_NODE_TYPE_KERNEL)
        result = graph_kernel_copy_attributes(&work->kernel, &node->work.kernel);
    if (!result)
        return graph_exec_set(exec, node, work);
    graph_work_fini(work);
    return result;
}
