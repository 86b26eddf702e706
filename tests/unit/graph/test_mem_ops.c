/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of words, as nodes. */
#include "fake_owner.h"
#include "unit.h"

static CUstreamBatchMemOpParams write_op(CUdeviceptr address, uint32_t value)
{
    return (CUstreamBatchMemOpParams){.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                     .address = address,
                                                     .value = value}};
}

static void senseless_batches_are_refused(void **state)
{
    CUstreamBatchMemOpParams op = write_op(0x1000, 1);

    assert_int_equal(graph_mem_ops_check(1, &op), 0);
    assert_int_equal(graph_mem_ops_check(0, NULL), 0);
    assert_int_equal(graph_mem_ops_check(1, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_mem_ops_check(256, &op), CUDA_ERROR_INVALID_VALUE);
    op.writeValue.flags = 2;
    assert_int_equal(graph_mem_ops_check(1, &op), CUDA_ERROR_INVALID_VALUE);
    op = write_op(0x1002, 1);
    assert_int_equal(graph_mem_ops_check(1, &op), CUDA_ERROR_INVALID_VALUE);
    op = write_op(0x1004, 1);
    op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    assert_int_equal(graph_mem_ops_check(1, &op), CUDA_ERROR_INVALID_VALUE);
    op.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    assert_int_equal(graph_mem_ops_check(1, &op), CUDA_ERROR_NOT_SUPPORTED);
    op.operation = 99;
    assert_int_equal(graph_mem_ops_check(1, &op), CUDA_ERROR_INVALID_VALUE);
    op.memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    op.memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    assert_int_equal(graph_mem_ops_check(1, &op), 0);
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    op.waitValue.address = 0x1008;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH;
    assert_int_equal(graph_mem_ops_check(1, &op), 0);
    op.waitValue.flags = 4;
    assert_int_equal(graph_mem_ops_check(1, &op), CUDA_ERROR_INVALID_VALUE);
}

/* The caller's array is not needed afterwards, and copies do not share theirs. */
static void nodes_own_their_batch(void **state)
{
    CUstreamBatchMemOpParams ops[2] = {write_op(0x1000, 1), write_op(0x1000, 2)};
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 2, .paramArray = ops}, told;
    CUgraph graph = new_graph(), clone;
    CUgraphNode node, copy;

    assert_int_equal(graph_cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params), 0);
    ops[0].writeValue.value = 77;
    assert_int_equal(graph_cuGraphBatchMemOpNodeGetParams(node, &told), 0);
    assert_int_equal(told.paramArray[0].writeValue.value, 1);
    told.paramArray[1].writeValue.value = 3; /* as programs change what they were told */
    assert_int_equal(graph_cuGraphBatchMemOpNodeSetParams(node, &told), 0);
    params = told;
    assert_int_equal(graph_cuGraphBatchMemOpNodeGetParams(node, &told), 0);
    assert_ptr_equal(told.paramArray, params.paramArray);
    assert_int_equal(told.paramArray[1].writeValue.value, 3);
    params.paramArray = ops;
    assert_int_equal(graph_cuGraphClone(&clone, graph), 0);
    params.count = 1;
    assert_int_equal(graph_cuGraphBatchMemOpNodeSetParams(node, &params), 0);
    assert_int_equal(graph_cuGraphNodeFindInClone(&copy, node, clone), 0);
    assert_int_equal(graph_cuGraphBatchMemOpNodeGetParams(copy, &told), 0);
    assert_int_equal(told.count, 2);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(clone_in(exec, node)->work.mem_ops.ops[0].writeValue.value, 77);
    params.count = 2;
    assert_int_equal(graph_cuGraphExecBatchMemOpNodeSetParams(exec, node, &params), 0);
    assert_int_equal(clone_in(exec, node)->work.mem_ops.count, 2);
    params.flags = 1;
    assert_int_equal(graph_cuGraphExecBatchMemOpNodeSetParams(exec, node, &params),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(clone), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senseless_batches_are_refused),
        cmocka_unit_test(nodes_own_their_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
