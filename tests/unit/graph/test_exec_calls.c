/* SPDX-License-Identifier: Apache-2.0 */
/* Launchable copies, and changing them node by node. */
#include "fake_owner.h"
#include "unit.h"

static void nodes_come_after_what_they_need(void **state)
{
    CUgraph graph = new_graph(), inner = new_graph();
    CUgraphNode late = add_empty(graph, NULL, 0), early = add_empty(graph, NULL, 0), child;

    add_empty(inner, NULL, 0);
    assert_int_equal(graph_cuGraphAddChildGraphNode(&child, graph, &early, 1, inner), 0);
    assert_int_equal(graph_cuGraphAddDependencies(graph, &child, &late, 1), 0);
    CUgraphExec handle = instantiate(graph);
    struct graph_exec *exec = graph_exec_get(handle);
    assert_int_equal(fake_execs, 1);
    assert_int_equal(exec->count, 4);
    assert_ptr_equal(exec->nodes[0], clone_in(handle, early));
    assert_ptr_equal(exec->nodes[1], clone_in(handle, child));
    assert_ptr_equal(exec->nodes[2]->graph, exec->nodes[1]->work.child);
    assert_ptr_equal(exec->nodes[3], clone_in(handle, late));
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(inner), 0);
    assert_int_equal(graph_cuGraphExecDestroy(handle), 0);
    assert_int_equal(fake_execs, 0);
    assert_int_equal(graph_cuGraphExecDestroy(handle), CUDA_ERROR_INVALID_VALUE);
}

static void nodes_are_set_one_by_one(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node = add_kernel(graph, 1, 1.0), empty = add_empty(graph, NULL, 0);
    CUgraphExec exec = instantiate(graph);
    CUDA_KERNEL_NODE_PARAMS params;
    unsigned enabled;

    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    params.gridDimX = 77;
    assert_int_equal(graph_cuGraphExecKernelNodeSetParams_v2(exec, node, &params), 0);
    assert_int_equal(clone_in(exec, node)->work.kernel.grid[0], 77);
    params.gridDimX = 78;
    fake_set_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(graph_cuGraphExecKernelNodeSetParams_v2(exec, node, &params),
                     CUDA_ERROR_OUT_OF_MEMORY);
    fake_set_result = 0;
    assert_int_equal(clone_in(exec, node)->work.kernel.grid[0], 77);
    assert_int_equal(graph_cuGraphExecKernelNodeSetParams_v2(exec, empty, &params),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphNodeSetEnabled(exec, node, 0), 0);
    assert_int_equal(graph_cuGraphNodeGetEnabled(exec, node, &enabled), 0);
    assert_int_equal(enabled, 0);
    assert_int_equal(graph_cuGraphNodeSetEnabled(exec, empty, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphNodeSetEnabled(exec, node, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
}

static void nodes_of_children_can_be_set(void **state)
{
    CUgraph graph = new_graph(), inner = new_graph(), embedded;
    CUgraphNode child, node;
    CUDA_KERNEL_NODE_PARAMS params;
    size_t count = 1;

    add_kernel(inner, 1, 1.0);
    assert_int_equal(graph_cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner), 0);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(graph_cuGraphChildGraphNodeGetGraph(child, &embedded), 0);
    assert_int_equal(graph_cuGraphGetNodes(embedded, &node, &count), 0);
    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    params.gridDimX = 3;
    assert_int_equal(graph_cuGraphExecKernelNodeSetParams_v2(exec, node, &params), 0);
    assert_int_equal(clone_in(exec, node)->work.kernel.grid[0], 3);
    add_kernel(inner, 2, 2.0);
    assert_int_equal(graph_cuGraphExecChildGraphNodeSetParams(exec, child, inner),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphExecChildGraphNodeSetParams(exec, child, embedded), 0);
    assert_int_equal(clone_in(exec, node)->work.kernel.grid[0], 1);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(inner), 0);
}

static CUresult set_copy(CUgraphExec exec, CUgraphNode node, CUDA_MEMCPY3D copy)
{
    return graph_cuGraphExecMemcpyNodeSetParams(exec, node, &copy, NULL);
}

/* One row may become longer; more rows stay, and so do the kinds of memory. */
static void copies_keep_their_kind(void **state)
{
    CUDA_MEMCPY3D row = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .WidthInBytes = 4,
                         .Height = 1,
                         .Depth = 1},
                  rows = row;
    CUgraph graph = new_graph();
    CUgraphNode first, second;

    rows.Height = 2;
    rows.srcPitch = rows.dstPitch = 64;
    assert_int_equal(graph_cuGraphAddMemcpyNode(&first, graph, NULL, 0, &row, NULL), 0);
    assert_int_equal(graph_cuGraphAddMemcpyNode(&second, graph, NULL, 0, &rows, NULL), 0);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(set_copy(exec, first, rows), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(set_copy(exec, second, row), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(set_copy(exec, second, rows), 0);
    rows.dstPitch = 128;
    assert_int_equal(set_copy(exec, second, rows), CUDA_ERROR_INVALID_VALUE);
    row.WidthInBytes = 8;
    row.srcPitch = 100;
    assert_int_equal(set_copy(exec, first, row), 0);
    assert_int_equal(clone_in(exec, first)->work.copy.WidthInBytes, 8);
    row.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    assert_int_equal(set_copy(exec, first, row), CUDA_ERROR_INVALID_VALUE);
    row.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    assert_int_equal(set_copy(exec, first, row), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static CUresult set_fill(CUgraphExec exec, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS fill)
{
    return graph_cuGraphExecMemsetNodeSetParams(exec, node, &fill, NULL);
}

static void memsets_keep_their_rows(void **state)
{
    CUDA_MEMSET_NODE_PARAMS row = {.elementSize = 4, .width = 2, .height = 1}, rows = row;
    CUgraph graph = new_graph();
    CUgraphNode first, second;

    rows.height = 3;
    rows.pitch = 64;
    assert_int_equal(graph_cuGraphAddMemsetNode(&first, graph, NULL, 0, &row, NULL), 0);
    assert_int_equal(graph_cuGraphAddMemsetNode(&second, graph, NULL, 0, &rows, NULL), 0);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(set_fill(exec, first, rows), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(set_fill(exec, second, row), CUDA_ERROR_INVALID_VALUE);
    rows.value = 7;
    assert_int_equal(set_fill(exec, second, rows), 0);
    rows.elementSize = 1;
    assert_int_equal(set_fill(exec, second, rows), CUDA_ERROR_INVALID_VALUE);
    row.width = 5;
    row.elementSize = 1;
    assert_int_equal(set_fill(exec, first, row), 0);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void flags_are_kept_or_refused(void **state)
{
    CUgraph graph = new_graph();
    CUgraphExec exec;
    cuuint64_t flags;

    assert_int_equal(graph_cuGraphInstantiateWithFlags(&exec, graph, 1 << 10),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        graph_cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
        CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(graph_cuGraphInstantiateWithFlags(
                         &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
                     0);
    assert_int_equal(graph_cuGraphExecGetFlags(exec, &flags), 0);
    assert_int_equal(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_come_after_what_they_need),
        cmocka_unit_test(nodes_are_set_one_by_one),
        cmocka_unit_test(nodes_of_children_can_be_set),
        cmocka_unit_test(copies_keep_their_kind),
        cmocka_unit_test(memsets_keep_their_rows),
        cmocka_unit_test(flags_are_kept_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
