/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that add, query and change nodes. graph_work.c turns the parameters of each kind into
 * work; the rest is the same for all kinds.
 */
#include <stdlib.h>

#include "graph_condition.h"
#include "graph_kernel.h"
#include "graph_memory.h"
#include "graph_nodes.h"
#include "graph_objects.h"
#include "graph_work.h"

static CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = params->func,
        .gridDimX = params->gridDimX,
        .gridDimY = params->gridDimY,
        .gridDimZ = params->gridDimZ,
        .blockDimX = params->blockDimX,
        .blockDimY = params->blockDimY,
        .blockDimZ = params->blockDimZ,
        .sharedMemBytes = params->sharedMemBytes,
        .kernelParams = params->kernelParams,
        .extra = params->extra,
    };
}

CUresult graph_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_kernel(nodeParams, &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    const CUDA_KERNEL_NODE_PARAMS params = newer(nodeParams);

    return graph_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies,
                                         &params);
}

CUresult graph_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_KERNEL);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = graph_kernel_params(&node->work);
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS params;
    CUresult result = graph_cuGraphKernelNodeGetParams_v2(hNode, &params);

    if (result)
        return result;
    *nodeParams = (CUDA_KERNEL_NODE_PARAMS_v1){
        .func = params.func ? params.func : (CUfunction)params.kern,
        .gridDimX = params.gridDimX,
        .gridDimY = params.gridDimY,
        .gridDimZ = params.gridDimZ,
        .blockDimX = params.blockDimX,
        .blockDimY = params.blockDimY,
        .blockDimZ = params.blockDimZ,
        .sharedMemBytes = params.sharedMemBytes,
        .kernelParams = params.kernelParams,
    };
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                             const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_kernel(nodeParams, &work);

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                          const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    const CUDA_KERNEL_NODE_PARAMS params = newer(nodeParams);

    return graph_cuGraphKernelNodeSetParams_v2(hNode, &params);
}

CUresult graph_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    const CUDA_KERNEL_NODE_PARAMS params = newer(nodeParams);

    return graph_cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &params);
}

CUresult graph_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_copy_box(copyParams, ctx, &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_MEMCPY);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = node->work.copy;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_MEMCPY);
    struct graph_work work;

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_work_copy_box(nodeParams, node->work.context, &work);

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_fill(memsetParams, ctx, &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_MEMSET);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = node->work.fill;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphMemsetNodeSetParams(CUgraphNode hNode,
                                          const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_MEMSET);
    struct graph_work work;

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_work_fill(nodeParams, node->work.context, &work);

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_host(nodeParams, &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_HOST);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = node->work.host;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_host(nodeParams, &work);

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        CUgraph childGraph)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_child(graph_get(childGraph), &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_GRAPH);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = (CUgraph)(uintptr_t)node->work.child->handle;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies, size_t numDependencies)
{
    GRAPH_LOCKED;
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    return graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

static CUresult add_event(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t count, CUgraphNodeType type, CUevent event)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_event(type, event, &work);

    return result ? result : graph_node_add(ret_node, graph, dependencies, NULL, count, &work);
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent *ret_event)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(handle, type);

    if (!node || !ret_event)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_event = node->work.event;
    return CUDA_SUCCESS;
}

static CUresult set_event(CUgraphNode handle, CUgraphNodeType type, CUevent event)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_event(type, event, &work);

    return result ? result : graph_node_set(handle, &work);
}

CUresult graph_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies,
                     CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult graph_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult graph_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult graph_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies,
                     CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult graph_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

CUresult graph_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static bool is_move(const CUgraphNodeParams *params)
{
    return params->type == CU_GRAPH_NODE_TYPE_GRAPH &&
           params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
}

/* A graph can move unless it is a child already, or contains its new parent. */
static bool can_move(const struct graph *child, const struct graph *into)
{
    if (!child || child->in || child->is_captured_into)
        return false;
    while (into && into != child)
        into = into->in ? into->in->graph : NULL;
    return into == NULL;
}

/* The child is empty until the node exists. */
static CUresult work_of_move(const struct graph *child, const struct graph *into,
                             struct graph_work *ret_work)
{
    if (!can_move(child, into))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_conditional(child))
        return CUDA_ERROR_NOT_SUPPORTED;
    *ret_work = (struct graph_work){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph_new(true)};
    return ret_work->child ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void move_child(struct graph_node *node, struct graph *child)
{
    graph_free(node->work.child);
    node->work.child = child;
    child->in = node;
}

/* Some kinds of nodes can be added, but not changed. */
static CUresult work_of_new(CUgraph graph, const CUgraphNodeParams *params,
                            struct graph_work *ret_work)
{
    if (is_move(params))
        return work_of_move(graph_get(params->graph.graph), graph_get(graph), ret_work);
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return graph_work_allocate(&params->alloc, NULL, ret_work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return graph_work_free(graph_get(graph), params->free.dptr, ret_work);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return graph_work_conditional(graph_get(graph), &params->conditional, ret_work);
    default:
        return graph_work_any(params, ret_work);
    }
}

CUresult graph_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies,
                                 const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                 CUgraphNodeParams *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = work_of_new(hGraph, nodeParams, &work);

    if (!result)
        result = graph_node_add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
                                &work);
    if (result)
        return result;
    if (is_move(nodeParams))
        move_child(graph_node_get(*phGraphNode), graph_get(nodeParams->graph.graph));
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        nodeParams->alloc.dptr = work.memory->address;
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        nodeParams->conditional.phGraph_out = work.conditional.handles;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                              const CUgraphNode *dependencies, size_t numDependencies,
                              CUgraphNodeParams *nodeParams)
{
    return graph_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                                   nodeParams);
}

CUresult graph_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_any(nodeParams, &work);

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphDestroyNode(CUgraphNode hNode)
{
    GRAPH_LOCKED;
    struct graph_node *node = graph_node_get(hNode);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(node->graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    graph_remove(node);
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_get(hNode);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->work.type;
    return CUDA_SUCCESS;
}
