/* SPDX-License-Identifier: Apache-2.0 */
/* Things of the program that graphs keep alive. */
#include "fake_owner.h"
#include "unit.h"

static unsigned ended;

static void end(void *user)
{
    ended++;
}

static CUuserObject make(unsigned references)
{
    CUuserObject object;

    assert_int_equal(
        graph_cuUserObjectCreate(&object, NULL, end, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
        0);
    return object;
}

static void expect_ended(unsigned count)
{
    fake_run_later();
    assert_int_equal(ended, count);
}

static void the_last_reference_ends_it(void **state)
{
    CUuserObject object = make(1);

    ended = 0;
    assert_int_equal(graph_cuUserObjectRetain(object, 2), 0);
    assert_int_equal(graph_cuUserObjectRetain(object, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuUserObjectRelease(object, 2), 0);
    expect_ended(0);
    assert_int_equal(graph_cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuUserObjectRelease(object, 1), 0);
    assert_int_equal(ended, 0); /* not inside the call: the lock is held there */
    expect_ended(1);
    assert_int_equal(graph_cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

static void graphs_have_references_of_their_own(void **state)
{
    CUgraph graph = new_graph(), clone;
    CUuserObject object = make(1);

    ended = 0;
    assert_int_equal(graph_cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphRetainUserObject(graph, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphRetainUserObject(graph, object, 2, 0), 0);
    assert_int_equal(graph_cuGraphClone(&clone, graph), 0);
    assert_int_equal(graph_cuUserObjectRelease(object, 1), 0);
    assert_int_equal(graph_cuGraphReleaseUserObject(graph, object, 3), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(graph_cuGraphReleaseUserObject(graph, object, 2), 0);
    assert_int_equal(graph_cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
    expect_ended(0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    expect_ended(0);
    assert_int_equal(graph_cuGraphDestroy(clone), 0);
    expect_ended(1);
}

/* The same object is in a graph and in its child: it ends once. */
static void execs_let_go_behind_their_launches(void **state)
{
    CUgraph graph = new_graph(), inner = new_graph();
    CUuserObject object = make(1);
    CUgraphNode node;

    ended = 0;
    assert_int_equal(graph_cuGraphRetainUserObject(inner, object, 1, 0), 0);
    assert_int_equal(graph_cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), 0);
    assert_int_equal(graph_cuGraphAddChildGraphNode(&node, graph, NULL, 0, inner), 0);
    CUgraphExec exec = instantiate(graph);
    assert_true(graph_exec_keeps(graph_exec_get(exec)));
    assert_int_equal(graph_cuGraphDestroy(inner), 0);
    assert_int_equal(graph_cuGraphExecDestroy(exec), 0);
    assert_int_equal(graph_cuGraphDestroy(graph), 0);
    assert_int_equal(graph_cuUserObjectRetain(object, 1), 0); /* launches may still need it */
    assert_int_equal(graph_cuUserObjectRelease(object, 1), 0);
    assert_int_equal(ended, 0);
    expect_ended(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_reference_ends_it),
        cmocka_unit_test(graphs_have_references_of_their_own),
        cmocka_unit_test(execs_let_go_behind_their_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
