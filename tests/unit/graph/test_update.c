/* SPDX-License-Identifier: Apache-2.0 */
/* A launchable graph that learns from another. */
#include "fake_owner.h"
#include "unit.h"

/* Two kernels, the second behind the first and an empty node. */
static CUgraph make(int first, int second, CUgraphNode *ret_nodes)
{
    CUgraph graph = new_graph();

    ret_nodes[0] = add_kernel(graph, first, 1.0);
    ret_nodes[1] = add_kernel(graph, second, 1.0);
    CUgraphNode empty = add_empty(graph, NULL, 0);
    CUgraphNode from[] = {ret_nodes[0], empty}, to[] = {ret_nodes[1], ret_nodes[1]};
    assert_int_equal(graph_cuGraphAddDependencies(graph, from, to, 2), 0);
    return graph;
}

static int number_in(CUgraphExec exec, CUgraphNode original)
{
    return *(int *)clone_in(exec, original)->work.kernel.params[0];
}

static void the_same_shape_is_taken_over(void **state)
{
    CUgraphNode nodes[2], others[2];
    CUgraph graph = make(1, 2, nodes), other = make(3, 4, others);
    CUgraphExecUpdateResultInfo info;
    CUgraphExec exec = instantiate(graph);

    assert_int_equal(graph_cuGraphExecUpdate_v2(exec, other, &info), 0);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_int_equal(number_in(exec, nodes[0]), 3);
    assert_int_equal(number_in(exec, nodes[1]), 4);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(other), 0);
}

static void another_shape_changes_nothing(void **state)
{
    CUgraphNode nodes[2], others[2];
    CUgraph graph = make(1, 2, nodes), other = make(3, 4, others);
    CUgraphExecUpdateResultInfo info;
    CUgraphExec exec = instantiate(graph);
    unsigned before = fake_sets;

    assert_int_equal(graph_cuGraphRemoveDependencies(other, &others[0], &others[1], 1), 0);
    assert_int_equal(graph_cuGraphExecUpdate_v2(exec, other, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    assert_int_equal(number_in(exec, nodes[0]), 1);
    assert_int_equal(fake_sets, before);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(other), 0);
}

static void another_kind_of_node_is_named(void **state)
{
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphExecUpdateResultInfo info;

    add_kernel(graph, 1, 1.0);
    CUgraphNode empty = add_empty(other, NULL, 0);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(graph_cuGraphExecUpdate_v2(exec, other, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_ptr_equal(info.errorNode, empty);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(other), 0);
}

static void kernels_stay_in_their_context(void **state)
{
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphExecUpdateResultInfo info;

    add_kernel(graph, 1, 1.0);
    fake_current = (CUcontext)0x2001;
    add_kernel(other, 1, 1.0);
    fake_current = FAKE_CONTEXT;
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(graph_cuGraphExecUpdate_v2(exec, other, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_shape_is_taken_over),
        cmocka_unit_test(another_shape_changes_nothing),
        cmocka_unit_test(another_kind_of_node_is_named),
        cmocka_unit_test(kernels_stay_in_their_context),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
