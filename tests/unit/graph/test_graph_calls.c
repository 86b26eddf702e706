/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, their edges and their copies. */
#include "fake_owner.h"
#include "unit.h"

static void edges_are_told(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode a = add_empty(graph, NULL, 0), b = add_empty(graph, &a, 1);
    CUgraphNode both[] = {a, b}, c = add_empty(graph, both, 2);
    CUgraphNode from[4], to[4], found[4];
    size_t count = 4;

    assert_int_equal(graph_cuGraphGetEdges(graph, from, to, &count), 0);
    assert_int_equal(count, 3);
    assert_ptr_equal(from[0], a);
    assert_ptr_equal(to[0], b);
    assert_ptr_equal(from[3], NULL);
    count = 0;
    assert_int_equal(graph_cuGraphGetNodes(graph, NULL, &count), 0);
    assert_int_equal(count, 3);
    count = 4;
    assert_int_equal(graph_cuGraphGetRootNodes(graph, found, &count), 0);
    assert_int_equal(count, 1);
    assert_ptr_equal(found[0], a);
    count = 4;
    assert_int_equal(graph_cuGraphNodeGetDependencies(c, found, &count), 0);
    assert_int_equal(count, 2);
    assert_ptr_equal(found[1], b);
    count = 1;
    assert_int_equal(graph_cuGraphNodeGetDependentNodes(a, found, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void edges_come_and_go(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode a = add_empty(graph, NULL, 0), b = add_empty(graph, NULL, 0);
    CUgraphNode from[] = {a, a}, to[] = {b, b};
    size_t count;

    assert_int_equal(graph_cuGraphAddDependencies(graph, from, to, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphGetEdges(graph, NULL, NULL, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(graph_cuGraphAddDependencies(graph, from, to, 1), 0);
    assert_int_equal(graph_cuGraphAddDependencies(graph, &a, &a, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphRemoveDependencies(graph, from, to, 1), 0);
    assert_int_equal(graph_cuGraphRemoveDependencies(graph, from, to, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void data_of_edges_is_not_lost_silently(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode a = add_kernel(graph, 1, 1.0), b = add_empty(graph, NULL, 0), found;
    const CUgraphEdgeData early = {.from_port = 1, .type = 1};
    CUgraphEdgeData data;
    size_t count = 1;

    /* Only a kernel has ports. */
    assert_int_equal(graph_cuGraphAddDependencies_v2(graph, &b, &a, &early, 1),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphAddDependencies_v2(graph, &a, &b, &early, 1), 0);
    assert_int_equal(graph_cuGraphNodeGetDependencies(b, &found, &count), CUDA_ERROR_LOSSY_QUERY);
    assert_int_equal(graph_cuGraphNodeGetDependencies_v2(b, &found, &data, &count), 0);
    assert_int_equal(data.from_port, 1);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void circles_are_not_instantiated(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode a = add_empty(graph, NULL, 0), b = add_empty(graph, &a, 1);
    CUgraphExec exec;

    assert_int_equal(graph_cuGraphAddDependencies(graph, &b, &a, 1), 0);
    assert_int_equal(graph_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    assert_int_equal(graph_cuGraphInstantiateWithParams(&exec, graph, &params),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void clones_stand_alone(void **state)
{
    CUgraph graph = new_graph(), clone, inner = new_graph();
    CUgraphNode kernel = add_kernel(graph, 7, 1.0), found, deep, child;
    CUgraphNode in_child = add_kernel(inner, 9, 1.0);

    assert_int_equal(graph_cuGraphAddChildGraphNode(&child, graph, &kernel, 1, inner), 0);
    assert_int_equal(graph_cuGraphClone(&clone, graph), 0);
    assert_int_equal(graph_cuGraphNodeFindInClone(&found, kernel, clone), 0);
    assert_ptr_not_equal(found, kernel);
    assert_int_equal(graph_cuGraphNodeFindInClone(&deep, in_child, clone),
                     CUDA_ERROR_INVALID_VALUE); /* the child is itself a clone */
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(number_of(found), 7);
    assert_int_equal(graph_cuGraphDestroyNode(found), 0);
    assert_int_equal(graph_cuGraphDestroyNode(found), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(clone), 0);
    assert_int_equal(graph_cuGraphDestroy(clone), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(inner), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_are_told),
        cmocka_unit_test(edges_come_and_go),
        cmocka_unit_test(data_of_edges_is_not_lost_silently),
        cmocka_unit_test(circles_are_not_instantiated),
        cmocka_unit_test(clones_stand_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
