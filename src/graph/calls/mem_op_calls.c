/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with a batch of memory operations: writes to words, and waits for words. */
#include "graph_exec.h"
#include "graph_nodes.h"
#include "graph_work.h"

CUresult graph_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_mem_ops(nodeParams, &work);

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                              CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams_out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
        .ctx = node->work.context,
        .count = node->work.mem_ops.count,
        .paramArray = node->work.mem_ops.ops,
    };
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                              const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_mem_ops(nodeParams, &work);

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = graph_work_mem_ops(nodeParams, &work);

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}
