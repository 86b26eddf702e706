/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of graphs: who has it, and when it is given back. */
#include "fake_owner.h"
#include "graph_memory.h"
#include "unit.h"

static CUdeviceptr add_allocation(CUgraph graph, CUgraphNode *ret_node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 4096,
    };

    assert_int_equal(graph_cuGraphAddMemAllocNode(ret_node, graph, NULL, 0, &params), 0);
    return params.dptr;
}

static CUresult add_free(CUgraph graph, CUdeviceptr address)
{
    CUgraphNode node;

    return graph_cuGraphAddMemFreeNode(&node, graph, NULL, 0, address);
}

static CUresult launch(CUgraphExec handle)
{
    const struct graph_exec *exec = graph_exec_get(handle);
    CUresult result = graph_memory_check_launch_locked(exec);

    if (!result)
        graph_memory_launched_locked(exec);
    return result;
}

static void memory_goes_with_the_last_graph_that_could_allocate_it(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node;

    add_allocation(graph, &node);
    assert_true(graph_memory_exists());
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(fake_memory, 1);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(fake_memory, 0);
    assert_false(graph_memory_exists());
}

static void memory_that_is_left_is_the_programs(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUdeviceptr address = add_allocation(graph, &node);
    CUgraphExec exec = instantiate(graph);
    struct graph_memory *memory = graph_memory_find_locked(address);

    assert_int_equal(graph_memory_check_free_locked(memory), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(launch(exec), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_memory_check_free_locked(memory), 0);
    graph_memory_freed_locked(memory);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(fake_memory, 1);
    graph_memory_freed_locked(memory);
    assert_int_equal(fake_memory, 0);
}

static void freed_at_home_or_elsewhere(void **state)
{
    CUgraph graph = new_graph(), other = new_graph(), third = new_graph();
    CUgraphNode node;
    CUdeviceptr home = add_allocation(graph, &node), away = add_allocation(graph, &node);

    assert_int_equal(add_free(graph, home), 0);
    assert_int_equal(add_free(graph, home), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_free(other, home), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_free(other, away), 0);
    assert_int_equal(add_free(third, away), 0);
    assert_int_equal(add_free(graph, away), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_free(graph, 0x1234), CUDA_ERROR_INVALID_VALUE);

    CUgraphExec exec = instantiate(graph), freeing = instantiate(other);
    assert_int_equal(launch(freeing), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(launch(freeing), 0);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(fake_memory, 1);
    assert_int_equal(launch(freeing), 0);
    assert_int_equal(fake_memory, 0);
    assert_int_equal(launch(freeing), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphExecDestroy(freeing), 0);
    assert_int_equal(graph_cuGraphDestroy(other), 0);
    assert_int_equal(graph_cuGraphDestroy(third), 0);
}

static void such_graphs_are_one_of_a_kind(void **state)
{
    CUgraph graph = new_graph(), outer = new_graph(), clone;
    CUgraphNode node, child;
    CUgraphExec exec, second;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

    add_allocation(graph, &node);
    exec = instantiate(graph);
    assert_int_equal(graph_cuGraphInstantiateWithFlags(&second, graph, 0),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(graph_cuGraphDestroyNode(node), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(graph_cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph),
                     CUDA_ERROR_NOT_SUPPORTED);
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    assert_int_equal(graph_cuGraphAddNode_v2(&child, outer, NULL, NULL, 0, &params), 0);
    exec = instantiate(outer);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(outer), 0);
    assert_int_equal(fake_memory, 1); /* that launch has left it to the program */
}

static void launches_that_free_first(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUgraphExec exec;

    add_allocation(graph, &node);
    assert_int_equal(graph_cuGraphInstantiateWithFlags(
                         &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
                     0);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(launch(exec), 0);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_goes_with_the_last_graph_that_could_allocate_it),
        cmocka_unit_test(memory_that_is_left_is_the_programs),
        cmocka_unit_test(freed_at_home_or_elsewhere),
        cmocka_unit_test(such_graphs_are_one_of_a_kind),
        cmocka_unit_test(launches_that_free_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
