/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes: kernels choose while a graph runs which graphs inside of it run, and how
 * often.
 */
#include "check.h"

#include <string.h>

#include "conditions.ptx.h"
#include "cuda_graph.h"

#define ASSIGN_DEFAULT 1 /* CU_GRAPH_COND_ASSIGN_DEFAULT */

static CUmodule module;
static CUfunction decide, decide_whole, count_down, note;
static CUcontext context;
static CUstream stream;
static CUdeviceptr choice, out; /* what `decide` reads; where `note` leaves its digits */

/* What the kernel nodes are made with; their values are copied when that is done. */
static CUgraphNode add(CUgraph graph, const CUgraphNode *before, CUfunction kernel, void **values)
{
    const CUDA_KERNEL_NODE_PARAMS params = {.func = kernel,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 1,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = values};
    CUgraphNode node;

    MUST(cuGraphAddKernelNode_v2(&node, graph, before, before ? 1 : 0, &params));
    return node;
}

static CUgraphNode add_decide(CUgraph graph, const CUgraphNode *before,
                              CUgraphConditionalHandle handle)
{
    void *values[] = {&handle, &choice};

    return add(graph, before, decide, values);
}

static CUgraphNode add_note(CUgraph graph, const CUgraphNode *before, unsigned digit)
{
    void *values[] = {&out, &digit};

    return add(graph, before, note, values);
}

static CUgraphNode add_count(CUgraph graph, const CUgraphNode *before, CUdeviceptr counter,
                             CUgraphConditionalHandle handle)
{
    void *values[] = {&counter, &handle};

    return add(graph, before, count_down, values);
}

static CUgraphNodeParams conditional(CUgraphConditionalHandle handle,
                                     CUgraphConditionalNodeType type, unsigned size)
{
    return (CUgraphNodeParams){
        .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
        .conditional = {.handle = handle, .type = type, .size = size, .ctx = context}};
}

/* The node, and its graphs, which are the node's. */
static CUgraphNode add_conditional(CUgraph graph, const CUgraphNode *before,
                                   CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                   unsigned size, CUgraph **ret_bodies)
{
    CUgraphNodeParams params = conditional(handle, type, size);
    CUgraphNode node = NULL;

    MUST(cuGraphAddNode_v2(&node, graph, before, NULL, before ? 1 : 0, &params));
    *ret_bodies = params.conditional.phGraph_out;
    return node;
}

static CUgraphConditionalHandle make_handle(CUgraph graph, unsigned value, unsigned flags)
{
    CUgraphConditionalHandle handle = 0;

    MUST(cuGraphConditionalHandleCreate(&handle, graph, context, value, flags));
    return handle;
}

static void set(CUdeviceptr word, unsigned value)
{
    MUST(cuMemcpyHtoD_v2(word, &value, sizeof(value)));
}

/* The digits of one launch for which `decide` reads that choice. */
static unsigned notes_of(CUgraphExec exec, unsigned chosen)
{
    set(choice, chosen);
    set(out, 0);
    EXPECT(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    return word_at(out);
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec = NULL;

    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void end(CUgraphExec exec, CUgraph graph)
{
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* A kernel that decides, a node of that many graphs, each of which notes 1 + its number, and behind
 * it a 9. */
static CUgraph make_choice(CUgraphConditionalNodeType type, unsigned size, CUgraph **ret_bodies,
                           CUgraphNode *ret_last)
{
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = make_handle(graph, 0, 0);
    CUgraphNode first = add_decide(graph, NULL, handle);
    CUgraphNode node = add_conditional(graph, &first, handle, type, size, ret_bodies);
    for (unsigned i = 0; i < size; i++)
        add_note((*ret_bodies)[i], NULL, 1 + i);
    *ret_last = add_note(graph, &node, 9);
    return graph;
}

static void an_if_runs_or_does_not(void)
{
    CUgraph *bodies;
    CUgraphNode last;
    CUgraphNodeType type;
    size_t count = 0;
    CUgraph graph = make_choice(CU_GRAPH_COND_TYPE_IF, 1, &bodies, &last);
    CUgraphExec exec = instantiate(graph);
    CUgraphNode nodes[3];

    for (int round = 0; round < 3; round++) {
        IS_TRUE(notes_of(exec, 0) == 9);
        IS_TRUE(notes_of(exec, 1) == 19);
        IS_TRUE(notes_of(exec, 7) == 19);
    }
    MUST(cuGraphGetNodes(graph, NULL, &count));
    IS_TRUE(count == 3);
    MUST(cuGraphGetNodes(graph, nodes, &count));
    MUST(cuGraphNodeGetType(nodes[1], &type));
    IS_TRUE(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
    MUST(cuGraphGetNodes(bodies[0], NULL, &count));
    IS_TRUE(count == 1);
    end(exec, graph);
}

static void an_if_has_another_side(void)
{
    CUgraph *bodies;
    CUgraphNode last;
    CUgraph graph = make_choice(CU_GRAPH_COND_TYPE_IF, 2, &bodies, &last);
    CUgraphExec exec = instantiate(graph);

    IS_TRUE(notes_of(exec, 1) == 19);
    IS_TRUE(notes_of(exec, 0) == 29);
    end(exec, graph);
}

static void a_switch_chooses(void)
{
    CUgraph *bodies;
    CUgraphNode last;
    CUgraph graph = make_choice(CU_GRAPH_COND_TYPE_SWITCH, 5, &bodies, &last);
    CUgraphExec exec = instantiate(graph);

    for (unsigned i = 0; i < 5; i++)
        IS_TRUE(notes_of(exec, i) == 10 * (1 + i) + 9);
    IS_TRUE(notes_of(exec, 5) == 9);
    IS_TRUE(notes_of(exec, 4000000000u) == 9);
    end(exec, graph);
}

/* As NVIDIA's documentation has it: what is captured into the graph of a loop. */
static void a_loop_is_captured(void)
{
    CUdeviceptr counter = make_words(1, 4);
    CUgraph graph, *bodies;
    unsigned digit = 5;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = make_handle(graph, 1, ASSIGN_DEFAULT);
    CUgraphNode node = add_conditional(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies);
    void *notes[] = {&out, &digit}, *counts[] = {&counter, &handle};
    MUST(cuStreamBeginCaptureToGraph(stream, bodies[0], NULL, NULL, 0,
                                     CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_one(note, stream, notes);
    launch_one(count_down, stream, counts);
    MUST(cuStreamEndCapture(stream, NULL));
    add_note(graph, &node, 9);
    CUgraphExec exec = instantiate(graph);
    IS_TRUE(notes_of(exec, 0) == 55559);
    set(counter, 2);
    IS_TRUE(notes_of(exec, 0) == 559);
    end(exec, graph);
    MUST(cuMemFree_v2(counter));
}

/* Two turns of a loop, in each of which a branch runs or not, and a loop of its own. */
static void nodes_are_in_each_other(void)
{
    CUdeviceptr outer = make_words(2, 3), inner = outer + 4;
    CUgraph graph, *bodies, *branch, *loop;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle turns = make_handle(graph, 1, ASSIGN_DEFAULT);
    CUgraphConditionalHandle chosen = make_handle(graph, 0, 0);
    CUgraphNode root = add_note(graph, NULL, 7);
    root = add_conditional(graph, &root, turns, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies);
    add_note(graph, &root, 9);
    CUgraphNode node = add_decide(bodies[0], NULL, chosen);
    node = add_conditional(bodies[0], &node, chosen, CU_GRAPH_COND_TYPE_IF, 1, &branch);
    /* A handle may be made for the graph inside, too. */
    CUgraphConditionalHandle again = make_handle(branch[0], 1, ASSIGN_DEFAULT);
    CUgraphNode first = add_note(branch[0], NULL, 1);
    add_conditional(branch[0], &first, again, CU_GRAPH_COND_TYPE_WHILE, 1, &loop);
    first = add_note(loop[0], NULL, 2);
    add_count(loop[0], &first, inner, again);
    add_count(bodies[0], &node, outer, turns);
    CUgraphExec exec = instantiate(graph);

    IS_TRUE(notes_of(exec, 0) == 79);
    set(outer, 1);
    IS_TRUE(notes_of(exec, 1) == 712229);
    end(exec, graph);
    MUST(cuMemFree_v2(outer));
}

static void defaults_come_back(void)
{
    CUgraph graph, *bodies;
    struct {
        unsigned char unused;
        CUgraphConditionalHandle handle;
        unsigned value;
    } decision = {.value = 0};
    unsigned char unused = 0;
    void *values[] = {&unused, &decision};

    MUST(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = make_handle(graph, 1, ASSIGN_DEFAULT);
    CUgraphNode node = add_conditional(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies);
    CUgraphNode inside = add_note(bodies[0], NULL, 1);
    decision.handle = handle;
    CUgraphNode whole = add(bodies[0], &inside, decide_whole, values);
    add_note(graph, &node, 9);
    CUgraphExec exec = instantiate(graph);
    for (int round = 0; round < 3; round++)
        IS_TRUE(notes_of(exec, 0) == 19);
    (void)whole;
    end(exec, graph);
}

static void all_kinds_of_nodes_inside(void)
{
    CUdeviceptr words = make_words(64, 1);
    CUgraphNode last, fill, copy, empty, child;
    CUgraph *bodies, inner;
    CUgraph graph = make_choice(CU_GRAPH_COND_TYPE_IF, 1, &bodies, &last);
    const CUDA_MEMSET_NODE_PARAMS params = {
        .dst = words, .value = 7, .elementSize = 4, .width = 32, .height = 1};
    const CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = words,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = words + 128,
                               .WidthInBytes = 128,
                               .Height = 1,
                               .Depth = 1};

    MUST(cuGraphCreate(&inner, 0));
    CUgraphNode three = add_note(inner, NULL, 3);
    add_note(inner, &three, 4);
    MUST(cuGraphAddMemsetNode(&fill, bodies[0], NULL, 0, &params, context));
    MUST(cuGraphAddMemcpyNode(&copy, bodies[0], &fill, 1, &box, context));
    MUST(cuGraphAddEmptyNode(&empty, bodies[0], &copy, 1));
    size_t one = 1;
    MUST(cuGraphGetRootNodes(bodies[0], &three, &one));
    MUST(cuGraphAddDependencies(bodies[0], &three, &empty, 1));
    MUST(cuGraphAddChildGraphNode(&child, bodies[0], &empty, 1, inner));
    add_note(bodies[0], &child, 5);
    CUgraphExec exec = instantiate(graph);
    IS_TRUE(notes_of(exec, 0) == 9);
    IS_TRUE(words_are(words, 64, 1));
    IS_TRUE(notes_of(exec, 1) == 13459);
    IS_TRUE(words_are(words, 64, 7));
    end(exec, graph);
    MUST(cuGraphDestroy(inner));
    MUST(cuMemFree_v2(words));
}

static CUDA_KERNEL_NODE_PARAMS note_params(void **values)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = note,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = values,
                                     .ctx = context};
}

static void what_is_inside_changes(void)
{
    unsigned digit = 6;
    void *values[] = {&out, &digit};
    CUDA_KERNEL_NODE_PARAMS params = note_params(values);
    CUgraph *bodies, *others;
    CUgraphNode last, inside;
    size_t count = 1;
    CUgraph graph = make_choice(CU_GRAPH_COND_TYPE_IF, 1, &bodies, &last);
    CUgraph other = make_choice(CU_GRAPH_COND_TYPE_IF, 1, &others, &last);
    CUgraph third = make_choice(CU_GRAPH_COND_TYPE_IF, 2, &others, &last);
    CUgraphExec exec = instantiate(graph);
    CUgraphExecUpdateResultInfo info;

    MUST(cuGraphGetNodes(bodies[0], &inside, &count));
    EXPECT(CUDA_SUCCESS, cuGraphExecKernelNodeSetParams_v2(exec, inside, &params));
    IS_TRUE(notes_of(exec, 1) == 69);
    EXPECT(CUDA_SUCCESS, cuGraphNodeSetEnabled(exec, inside, 0));
    IS_TRUE(notes_of(exec, 1) == 9);
    EXPECT(CUDA_SUCCESS, cuGraphNodeSetEnabled(exec, inside, 1));
    /* The kernels of the other graph set the handle of that graph. */
    EXPECT(CUDA_SUCCESS, cuGraphExecUpdate_v2(exec, other, &info));
    IS_TRUE(notes_of(exec, 1) == 19);
    IS_TRUE(notes_of(exec, 0) == 9);
    EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, third, &info));
    IS_TRUE(notes_of(exec, 1) == 19);
    MUST(cuGraphDestroy(third));
    MUST(cuGraphDestroy(other));
    end(exec, graph);
}

static void call_nothing(void *unused)
{
    (void)unused;
}

static void what_cannot_be_is_refused(void)
{
    CUgraph graph, other, *bodies;
    CUgraphConditionalHandle handle, foreign;
    CUgraphNode node, inside;
    CUgraphNodeParams params;
    CUgraphExec exec;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphCreate(&other, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, NULL, context, 0, 0));
    foreign = make_handle(other, 0, 0);
    params = conditional(foreign, CU_GRAPH_COND_TYPE_IF, 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    handle = make_handle(graph, 0, 0);
    params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 3);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(handle, CU_GRAPH_COND_TYPE_WHILE, 2);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(handle, CU_GRAPH_COND_TYPE_SWITCH, 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));

    node = add_decide(graph, NULL, handle);
    add_conditional(graph, &node, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(bodies[0]));
    IS_TRUE(cuGraphClone(&other, graph) != CUDA_SUCCESS);
    IS_TRUE(cuGraphAddChildGraphNode(&inside, other, NULL, 0, graph) != CUDA_SUCCESS);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CUgraphExec second;
    IS_TRUE(cuGraphInstantiateWithFlags(&second, graph, 0) != CUDA_SUCCESS);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphExecDestroy(exec));

    const CUDA_HOST_NODE_PARAMS host = {.fn = call_nothing};
    if (cuGraphAddHostNode(&inside, bodies[0], NULL, 0, &host) == CUDA_SUCCESS)
        IS_TRUE(cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS);
    MUST(cuGraphDestroy(graph));
    MUST(cuGraphDestroy(other));
}

static void a_handle_without_a_node(void)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = make_handle(graph, 0, 0);
    add_decide(graph, NULL, handle);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
    IS_TRUE(params.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    MUST(cuGraphDestroy(graph));
}

/* What was launched goes on, and in order, when its graph is no more. */
static void launches_outlive_their_graph(void)
{
    CUdeviceptr counter = make_words(1, 0);
    unsigned turns = 100;
    CUgraph graph, *bodies;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = make_handle(graph, 1, ASSIGN_DEFAULT);
    add_conditional(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies);
    add_count(bodies[0], NULL, counter, handle);
    CUgraphExec exec = instantiate(graph);
    set(out, 0);
    for (int round = 0; round < 3; round++) {
        MUST(cuMemsetD32Async(counter, turns, 1, stream));
        MUST(cuGraphLaunch(exec, stream));
        unsigned digit = 1 + (unsigned)round;
        void *values[] = {&out, &digit};
        launch_one(note, stream, values);
    }
    end(exec, graph);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(word_at(out) == 123);
    IS_TRUE(word_at(counter) == 0);
    MUST(cuMemFree_v2(counter));
}

/* A function of the program behind the node: the graph goes to the GPU in parts. */
static void count_call(void *calls)
{
    ++*(int *)calls;
}

static void beside_steps_of_the_program(void)
{
    CUgraph *bodies;
    CUgraphNode last, host;
    int calls = 0;
    const CUDA_HOST_NODE_PARAMS params = {.fn = count_call, .userData = &calls};
    CUgraph graph = make_choice(CU_GRAPH_COND_TYPE_IF, 2, &bodies, &last);

    MUST(cuGraphAddHostNode(&host, graph, &last, 1, &params));
    add_note(graph, &host, 8);
    CUgraphExec exec = instantiate(graph);
    IS_TRUE(notes_of(exec, 1) == 198);
    IS_TRUE(notes_of(exec, 0) == 298);
    IS_TRUE(calls == 2);
    end(exec, graph);
}

int main(void)
{
    check_open();
    MUST(cuCtxGetCurrent(&context));
    MUST(cuModuleLoadData(&module, conditions_ptx));
    decide = get_kernel(module, "decide");
    decide_whole = get_kernel(module, "decide_whole");
    count_down = get_kernel(module, "count_down");
    note = get_kernel(module, "note");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    choice = make_words(2, 0);
    out = choice + 4;
    RUN(an_if_runs_or_does_not);
    RUN(an_if_has_another_side);
    RUN(a_switch_chooses);
    RUN(a_loop_is_captured);
    RUN(nodes_are_in_each_other);
    RUN(defaults_come_back);
    RUN(all_kinds_of_nodes_inside);
    RUN(what_is_inside_changes);
    RUN(what_cannot_be_is_refused);
    RUN(a_handle_without_a_node);
    RUN(launches_outlive_their_graph);
    RUN(beside_steps_of_the_program);
    MUST(cuMemFree_v2(choice));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuModuleUnload(module));
    return check_close();
}
