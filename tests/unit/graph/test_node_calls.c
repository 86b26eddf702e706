/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of every kind: what goes in comes out. */
#include <string.h>

#include "fake_owner.h"
#include "unit.h"

static void kernels_keep_their_parameters(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node = add_kernel(graph, 5, 2.5);
    CUDA_KERNEL_NODE_PARAMS params, told;
    unsigned char packed[16] = {6};
    size_t size = sizeof(packed);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    assert_int_equal(*(int *)params.kernelParams[0], 5);
    assert_true(*(double *)params.kernelParams[1] == 2.5);
    assert_int_equal(params.blockDimX, 32);
    params.kernelParams = NULL;
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), CUDA_ERROR_INVALID_VALUE);
    params.extra = extra;
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &told), 0);
    assert_null(told.kernelParams);
    assert_ptr_equal(told.extra[0], CU_LAUNCH_PARAM_BUFFER_POINTER);
    assert_int_equal(*(size_t *)told.extra[3], 16);
    *(int *)told.extra[1] = 8; /* as it is told it can be set */
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &told), 0);
    assert_int_equal(number_of(node), 8);
    size = 1; /* the rest is zero */
    packed[0] = 7;
    packed[1] = 1;
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    assert_int_equal(number_of(node), 7);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

/* Programs write into the array that they were told, and set the node by it again and again. */
static void arrays_stay_where_they_are(void **state)
{
    CUgraph graph = new_graph(), clone;
    CUgraphNode node = add_kernel(graph, 5, 2.5), copy;
    CUDA_KERNEL_NODE_PARAMS params, again;

    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    int *own = params.kernelParams[0];
    for (int number = 6; number < 9; number++) {
        params.kernelParams[0] = &number;
        assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
        assert_ptr_equal(params.kernelParams[0], own);
        assert_int_equal(*own, number);
        assert_true(*(double *)params.kernelParams[1] == 2.5);
    }
    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &again), 0);
    assert_ptr_equal(again.kernelParams, params.kernelParams);
    params.kernelParams[0] = &again; /* a copy of the node does not follow it */
    assert_int_equal(graph_cuGraphClone(&clone, graph), 0);
    assert_int_equal(graph_cuGraphNodeFindInClone(&copy, node, clone), 0);
    assert_int_equal(number_of(copy), 8);
    assert_int_equal(graph_cuGraphDestroy(clone), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void expect_library_kernel(CUgraphNode node)
{
    CUDA_KERNEL_NODE_PARAMS told;
    CUDA_KERNEL_NODE_PARAMS_v1 older;

    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &told), 0);
    assert_ptr_equal(told.func, FAKE_LIBRARY_FUNCTION);
    assert_ptr_equal(told.kern, FAKE_LIBRARY_KERNEL);
    assert_int_equal(graph_cuGraphKernelNodeGetParams(node, &older), 0);
    assert_ptr_equal(older.func, FAKE_LIBRARY_FUNCTION);
}

/* Whichever handle a kernel of a library was given by, both are told. */
static void kernels_of_libraries_are_told_as_such(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node = add_kernel(graph, 5, 2.5);
    CUDA_KERNEL_NODE_PARAMS params;

    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    assert_ptr_equal(params.func, FAKE_KERNEL);
    assert_null(params.kern);
    params.func = (CUfunction)FAKE_LIBRARY_KERNEL;
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    expect_library_kernel(node);
    params.func = FAKE_LIBRARY_FUNCTION;
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    expect_library_kernel(node);
    params.func = NULL;
    params.kern = FAKE_LIBRARY_KERNEL;
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    expect_library_kernel(node);
    params.func = FAKE_KERNEL; /* then `kern` does not count */
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    assert_ptr_equal(params.func, FAKE_KERNEL);
    assert_null(params.kern);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void attributes_outlive_parameters(void **state)
{
    CUgraph graph = new_graph();
    CUgraphNode node = add_kernel(graph, 5, 2.5), other = add_kernel(graph, 1, 1.0);
    CUlaunchAttributeValue value = {.priority = -3};
    CUDA_KERNEL_NODE_PARAMS params;

    assert_int_equal(
        graph_cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), 0);
    assert_int_equal(graph_cuGraphKernelNodeGetParams_v2(node, &params), 0);
    assert_int_equal(graph_cuGraphKernelNodeSetParams_v2(node, &params), 0);
    assert_int_equal(graph_cuGraphKernelNodeCopyAttributes(other, node), 0);
    memset(&value, 0, sizeof(value));
    assert_int_equal(
        graph_cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), 0);
    assert_int_equal(value.priority, -3);
    assert_int_equal(graph_cuGraphKernelNodeSetAttribute(
                         node, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void call_nothing(void *user)
{
}

static void the_other_kinds(void **state)
{
    CUgraph graph = new_graph(), inner;
    CUDA_MEMCPY3D copy = {.WidthInBytes = 4, .Height = 1, .Depth = 1}, copied;
    CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 4, .width = 1, .height = 1}, filled;
    CUDA_HOST_NODE_PARAMS host = {call_nothing, NULL}, hosted;
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphNodeType type;
    CUgraphNode node;
    CUevent event;

    assert_int_equal(graph_cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), 0);
    assert_int_equal(graph_cuGraphMemcpyNodeGetParams(node, &copied), 0);
    assert_int_equal(copied.WidthInBytes, 4);
    copy.Height = 0;
    assert_int_equal(graph_cuGraphMemcpyNodeSetParams(node, &copy), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphMemsetNodeGetParams(node, &filled), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL), 0);
    fill.width = 0;
    assert_int_equal(graph_cuGraphMemsetNodeSetParams(node, &fill), CUDA_ERROR_INVALID_VALUE);
    fill.width = 1;
    fill.elementSize = 3;
    assert_int_equal(graph_cuGraphMemsetNodeSetParams(node, &fill), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphMemsetNodeGetParams(node, &filled), 0);
    assert_int_equal(filled.elementSize, 4);
    assert_int_equal(graph_cuGraphAddHostNode(&node, graph, &node, 1, &host), 0);
    assert_int_equal(graph_cuGraphHostNodeGetParams(node, &hosted), 0);
    assert_ptr_equal(hosted.fn, call_nothing);
    assert_int_equal(graph_cuGraphAddEventRecordNode(&node, graph, NULL, 0, BAD_EVENT),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(graph_cuGraphAddEventWaitNode(&node, graph, NULL, 0, BAD_EVENT), 0);
    assert_int_equal(graph_cuGraphEventWaitNodeGetEvent(node, &event), 0);
    assert_ptr_equal(event, BAD_EVENT);
    assert_int_equal(graph_cuGraphAddChildGraphNode(&node, graph, NULL, 0, graph), 0);
    assert_int_equal(graph_cuGraphNodeGetType(node, &type), 0);
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
    assert_int_equal(graph_cuGraphChildGraphNodeGetGraph(node, &inner), 0);
    assert_int_equal(graph_cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphAddNode(&node, graph, NULL, 0, &any), CUDA_ERROR_INVALID_VALUE);
    any.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    assert_int_equal(graph_cuGraphAddNode(&node, graph, NULL, 0, &any), CUDA_ERROR_NOT_SUPPORTED);
    any.type = CU_GRAPH_NODE_TYPE_EMPTY;
    assert_int_equal(graph_cuGraphAddNode(&node, graph, NULL, 0, &any), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
}

static void dependencies_are_of_the_graph(void **state)
{
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphNode stranger = add_empty(other, NULL, 0), node;
    CUgraphNode own = add_empty(graph, NULL, 0), twice[] = {own, own};
    size_t count;

    assert_int_equal(graph_cuGraphAddEmptyNode(&node, graph, &stranger, 1),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphAddEmptyNode(&node, graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphGetNodes(graph, NULL, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(other), 0);
}

static CUresult move(CUgraph child, CUgraph into, CUgraphNode *ret_node)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

    params.graph.graph = child;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    return graph_cuGraphAddNode_v2(ret_node, into, NULL, NULL, 0, &params);
}

static void children_move_once_and_not_into_themselves(void **state)
{
    CUgraph graph = new_graph(), inner = new_graph(), other = new_graph(), told;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraphNode node, deep;

    add_empty(inner, NULL, 0);
    assert_int_equal(move(graph, graph, &node), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(move(inner, graph, &node), 0);
    assert_int_equal(graph_cuGraphChildGraphNodeGetGraph(node, &told), 0);
    assert_ptr_equal(told, inner);
    assert_int_equal(move(inner, other, &deep), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(move(graph, inner, &deep), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(move(other, inner, &deep), 0);
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    assert_int_equal(graph_cuGraphNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphDestroy(other), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_keep_their_parameters),
        cmocka_unit_test(arrays_stay_where_they_are),
        cmocka_unit_test(kernels_of_libraries_are_told_as_such),
        cmocka_unit_test(attributes_outlive_parameters),
        cmocka_unit_test(the_other_kinds),
        cmocka_unit_test(children_move_once_and_not_into_themselves),
        cmocka_unit_test(dependencies_are_of_the_graph),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
