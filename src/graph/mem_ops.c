/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of words that are written or waited for: what is a batch, and nodes that do one.
 */
#include <stdlib.h>
#include <string.h>

#include "graph_objects.h"

#define OPS_MAX 255u

unsigned graph_mem_op_size(const CUstreamBatchMemOpParams *op, CUdeviceptr *ret_address)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        *ret_address = op->waitValue.address;
        return 4;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        *ret_address = op->waitValue.address;
        return 8;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        *ret_address = op->writeValue.address;
        return 4;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        *ret_address = op->writeValue.address;
        return 8;
    default:
        return 0;
    }
}

static bool has_known_flags(const CUstreamBatchMemOpParams *op)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return (op->waitValue.flags & ~CU_STREAM_WAIT_VALUE_FLUSH) <= CU_STREAM_WAIT_VALUE_NOR;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return op->writeValue.flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    default:
        return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    }
}

static CUresult check_op(const CUstreamBatchMemOpParams *op)
{
    CUdeviceptr address = 0;
    unsigned size = graph_mem_op_size(op, &address);

    if (op->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!size && op->operation != CU_STREAM_MEM_OP_BARRIER)
        return CUDA_ERROR_INVALID_VALUE;
    if (size && (!address || address % size))
        return CUDA_ERROR_INVALID_VALUE;
    return has_known_flags(op) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_mem_ops_check(unsigned count, const CUstreamBatchMemOpParams *ops)
{
    CUresult result = CUDA_SUCCESS;

    if (count > OPS_MAX || (count && !ops))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !result && i < count; i++)
        result = check_op(&ops[i]);
    return result;
}

CUresult graph_mem_ops_copy(unsigned count, const CUstreamBatchMemOpParams *ops,
                            struct graph_mem_ops *ret_copy)
{
    CUstreamBatchMemOpParams *copy = calloc(count + 1, sizeof(*copy));

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        memcpy(copy, ops, count * sizeof(*copy));
    *ret_copy = (struct graph_mem_ops){.count = count, .ops = copy};
    return CUDA_SUCCESS;
}

CUresult graph_work_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
                            struct graph_work *ret_work)
{
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    CUresult result = graph_mem_ops_check(params->count, params->paramArray);

    if (!result && params->flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = graph_backend.context_locked(params->ctx, &work.context);
    if (!result)
        result = graph_mem_ops_copy(params->count, params->paramArray, &work.mem_ops);
    return result ? result : graph_work_check(&work, ret_work);
}

CUresult graph_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = nodeParams ? graph_work_mem_ops(nodeParams, &work) : CUDA_ERROR_INVALID_VALUE;

    return result ? result
                  : graph_node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &work);
}

CUresult graph_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                              CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
    GRAPH_LOCKED;
    const struct graph_node *node = graph_node_of(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);

    if (!node || !nodeParams_out)
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
    CUresult result = nodeParams ? graph_work_mem_ops(nodeParams, &work) : CUDA_ERROR_INVALID_VALUE;

    return result ? result : graph_node_set(hNode, &work);
}

CUresult graph_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    GRAPH_LOCKED;
    struct graph_work work;
    CUresult result = nodeParams ? graph_work_mem_ops(nodeParams, &work) : CUDA_ERROR_INVALID_VALUE;

    return result ? result : graph_exec_node_set(hGraphExec, hNode, &work);
}
