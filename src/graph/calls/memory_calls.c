/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that allocate and free memory, and the memory use of a device's graphs. */
#include "graph_memory.h"
#include "graph_nodes.h"
#include "graph_objects.h"

CUresult graph_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_allocate(nodeParams, NULL, &work);

    if (!result)
        result = graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
    if (!result)
        nodeParams->dptr = work.memory->address;
    return result;
}

CUresult graph_cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
                                            CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *params_out = node->work.memory->params;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     CUdeviceptr dptr)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_free(graph_get(hGraph), dptr, &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr_out = node->work.memory->params.dptr;
    return CUDA_SUCCESS;
}

/* There is nothing to trim: memory without a graph is freed at once. */
CUresult graph_cuDeviceGraphMemTrim(CUdevice device)
{
    GRAPH_LOCKED;

    return graph_memory_usage_locked(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult graph_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    GRAPH_LOCKED;
    const struct graph_memory_usage *usage = graph_memory_usage_locked(device);

    if (!usage)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = usage->used;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = usage->used_high;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = usage->reserved;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = usage->reserved_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult graph_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    GRAPH_LOCKED;
    struct graph_memory_usage *usage = graph_memory_usage_locked(device);

    if (!usage)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        usage->used_high = usage->used;
    else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        usage->reserved_high = usage->reserved;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
