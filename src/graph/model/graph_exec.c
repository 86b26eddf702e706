/* SPDX-License-Identifier: Apache-2.0 */
/* Launchable graphs: copies whose nodes have no handles. */
#include "graph_exec.h"

#include "graph_handles.h"
#include "graph_kernel.h"

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

CUresult graph_exec_fill(struct graph_exec *exec, const struct graph *graph)
{
    CUresult result = graph_copy(graph, false, &exec->graph);

    if (!result)
        result = graph_list_all(exec->graph, &exec->nodes, &exec->count);
    for (unsigned i = 0; !result && i < exec->count; i++) {
        if (map_put(&exec->clones, exec->nodes[i]->original, exec->nodes[i]))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
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

    if (!node || node->work.type != work->type || node->work.context != work->context ||
        !graph_work_can_become(&node->work, work))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (work->type == CU_GRAPH_NODE_TYPE_KERNEL)
        result = graph_kernel_copy_attributes(&work->kernel, &node->work.kernel);
    if (!result)
        return graph_exec_set(exec, node, work);
    graph_work_fini(work);
    return result;
}
