/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_mem_ops.h. */
#include "graph_mem_ops.h"

#include <stdlib.h>
#include <string.h>

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

void graph_mem_ops_keep_array(struct graph_mem_ops *from, struct graph_mem_ops *to)
{
    CUstreamBatchMemOpParams *made = to->ops;

    if (from->count != to->count)
        return;
    memcpy(from->ops, made, to->count * sizeof(*made));
    to->ops = from->ops;
    from->ops = made;
}
