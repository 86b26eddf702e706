/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchable graphs: creation, destruction, and updates, node by node or by another graph of the
 * same shape.
 */
#include <stdlib.h>

#include "graph_condition.h"
#include "graph_exec.h"
#include "graph_memory.h"
#include "graph_work.h"
#include "user_object.h"

#define KNOWN_FLAGS                                                                         \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | \
     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

CUresult graph_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           unsigned long long flags)
{
    GRAPH_LOCKED;
    struct graph *graph = graph_get(hGraph);
    bool has_memory = graph && graph_has_memory(graph);

    if (!graph || graph->is_captured_into || graph_has_unused_condition(graph))
        return CUDA_ERROR_INVALID_VALUE;
    if ((has_memory || graph_has_conditional(graph)) &&
        graph_exec_get((CUgraphExec)(uintptr_t)graph->exec))
        return CUDA_ERROR_NOT_SUPPORTED; /* one at a time */
    CUresult result = graph_check_bodies(graph);
    if (result)
        return result;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (flags & ~(unsigned long long)KNOWN_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_exec *exec = calloc(1, sizeof(*exec));
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->flags = flags;
    exec->has_memory = has_memory;
    result = graph_exec_fill(exec, graph);
    if (result) {
        graph_exec_free(exec);
        return result;
    }
    graph->exec = exec->handle;
    *phGraphExec = (CUgraphExec)(uintptr_t)exec->handle;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                     CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        logBuffer[0] = 0;
    return graph_cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult graph_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                  CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return graph_cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

static bool misses_node(CUgraph handle)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(handle);

    return graph && graph_has_unused_condition(graph);
}

static CUgraphInstantiateResult why(CUgraph graph, CUresult result)
{
    if (result && misses_node(graph))
        return CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    switch (result) {
    case CUDA_SUCCESS:
        return CUDA_GRAPH_INSTANTIATE_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
        return CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    case CUDA_ERROR_NOT_SUPPORTED:
        return CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    default:
        return CUDA_GRAPH_INSTANTIATE_ERROR;
    }
}

CUresult graph_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                            CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    CUresult result =
        graph_cuGraphInstantiateWithFlags(phGraphExec, hGraph, instantiateParams->flags);

    instantiateParams->hErrNode_out = NULL;
    instantiateParams->result_out = why(hGraph, result);
    return result;
}

CUresult graph_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    GRAPH_LOCKED;
    const struct graph_exec *exec = graph_exec_get(hGraphExec);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    GRAPH_LOCKED;
    struct graph_exec *exec = graph_exec_get(hGraphExec);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    graph_exec_let_go(exec);
    graph_backend.exec_destroy_locked(exec);
    graph_exec_free(exec);
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                 const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_kernel(nodeParams, &work);

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}

CUresult graph_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_copy_box(copyParams, ctx, &work);

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}

CUresult graph_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                              CUcontext ctx)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_fill(memsetParams, ctx, &work);

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}

CUresult graph_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_host(nodeParams, &work);

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}

static CUresult set_event(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_event(type, event, &work);

    return result ? result : graph_exec_node_set(exec, node, &work);
}

CUresult graph_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  CUevent event)
{
    return set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult graph_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                CUevent event)
{
    return set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static CUresult set_child(CUgraphExec exec_handle, CUgraphNode handle, CUgraph child)
{
    GRAPH_LOCKED;
    struct graph_exec *exec = graph_exec_get(exec_handle);
    const struct graph_node *node = graph_exec_clone(exec, handle);
    const struct graph *graph = graph_get(child);
    CUgraphExecUpdateResultInfo ignored;

    if (!node || node->work.type != CU_GRAPH_NODE_TYPE_GRAPH || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_exec_update(exec, node->work.child, graph, &ignored) ? CUDA_ERROR_INVALID_VALUE
                                                                      : CUDA_SUCCESS;
}

CUresult graph_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  CUgraph childGraph)
{
    return set_child(hGraphExec, hNode, childGraph);
}

CUresult graph_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        CUgraphNodeParams *nodeParams)
{
    struct graph_work work;

    if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return set_child(hGraphExec, hNode, nodeParams->graph.graph);
    GRAPH_LOCKED;
    CUresult result = graph_work_any(nodeParams, &work);

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}

/* Only kernels, copies and memsets can be disabled. */
static bool can_be_disabled(const struct graph_node *node)
{
    return node->work.type == CU_GRAPH_NODE_TYPE_KERNEL ||
           node->work.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           node->work.type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult graph_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                     unsigned int *isEnabled)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_exec_clone(graph_exec_get(hGraphExec), hNode);

    if (!node || !can_be_disabled(node))
        return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = !node->disabled;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                     unsigned int isEnabled)
{
    GRAPH_LOCKED;
    struct graph_exec *exec = graph_exec_get(hGraphExec);
    struct graph_node *node = graph_exec_clone(exec, hNode);

    if (!node || !can_be_disabled(node))
        return CUDA_ERROR_INVALID_VALUE;
    node->disabled = !isEnabled;
    return graph_backend.exec_set_locked(exec, node);
}

CUresult graph_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                    CUgraphExecUpdateResultInfo *resultInfo)
{
    GRAPH_LOCKED;
    struct graph_exec *exec = graph_exec_get(hGraphExec);
    const struct graph *graph = graph_get(hGraph);

    if (!exec || !graph || graph->is_captured_into)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_exec_update(exec, exec->graph, graph, resultInfo);
}

CUresult graph_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                 CUgraphNode *hErrorNode_out,
                                 CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info = {0};
    CUresult result = graph_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

    if (hErrorNode_out)
        *hErrorNode_out = info.errorNode;
    if (updateResult_out)
        *updateResult_out = info.result;
    return result;
}
