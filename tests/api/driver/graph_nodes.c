/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs beyond kernels and copies: words that are written and waited for, and child graphs that
 * are moved. Also things of the program that a graph keeps alive. Also the text form of a graph.
 */
#include "check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CUmodule module;
static CUstream stream, other;
static uint32_t *words; /* pinned: both sides see them at once */
static CUdeviceptr on_device;

static CUstreamBatchMemOpParams write_op(unsigned word, uint32_t value)
{
    return (CUstreamBatchMemOpParams){.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                     .address = on_device + 4 * word,
                                                     .value = value}};
}

static CUstreamBatchMemOpParams wait_op(unsigned word, uint32_t value)
{
    return (CUstreamBatchMemOpParams){.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                    .address = on_device + 4 * word,
                                                    .value = value,
                                                    .flags = CU_STREAM_WAIT_VALUE_GEQ}};
}

static void await(const uint32_t *word, uint32_t value)
{
    for (int i = 0; i < 60000 && __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; i++)
        usleep(1000);
    IS_TRUE(__atomic_load_n(word, __ATOMIC_ACQUIRE) == value);
}

static void batches_go_one_by_one(void)
{
    CUstreamBatchMemOpParams ops[] = {write_op(0, 1), wait_op(1, 5), write_op(0, 2)};
    CUstreamBatchMemOpParams bad = write_op(0, 3);

    memset(words, 0, 64);
    EXPECT(CUDA_SUCCESS, cuStreamBatchMemOp_v2(stream, 3, ops, 0));
    await(&words[0], 1);
    EXPECT(CUDA_SUCCESS, cuStreamWriteValue32_v2(other, on_device + 4, 5, 0));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words[0] == 2);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(stream, 1, &bad, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(stream, 256, ops, 0));
    EXPECT(CUDA_SUCCESS, cuStreamBatchMemOp_v2(stream, 0, ops, 0));
    bad.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    bad.flushRemoteWrites.flags = 0;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuStreamBatchMemOp_v2(stream, 1, &bad, 0));
    bad.operation = (CUstreamBatchMemOpType)77;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(stream, 1, &bad, 0));
    bad.operation = 77;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(stream, 1, &bad, 0));
    MUST(cuStreamSynchronize(stream));
}

static CUgraphNode add_words(CUgraph graph, const CUgraphNode *before, size_t count,
                             CUstreamBatchMemOpParams *ops, unsigned op_count)
{
    CUcontext context = NULL;
    CUgraphNode node = NULL;

    MUST(cuCtxGetCurrent(&context));
    const CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
        .ctx = context, .count = op_count, .paramArray = ops};
    MUST(cuGraphAddBatchMemOpNode(&node, graph, before, count, &params));
    return node;
}

static void words_in_graphs(void)
{
    CUstreamBatchMemOpParams first[] = {write_op(0, 7), wait_op(1, 9)}, last[] = {write_op(2, 8)};
    CUDA_BATCH_MEM_OP_NODE_PARAMS told;
    CUgraphNodeType type;
    CUgraphExec exec;
    CUgraph graph;

    memset(words, 0, 64);
    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode node = add_words(graph, NULL, 0, first, 2);
    CUgraphNode end = add_words(graph, &node, 1, last, 1);
    MUST(cuGraphNodeGetType(node, &type));
    IS_TRUE(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    MUST(cuGraphBatchMemOpNodeGetParams(node, &told));
    IS_TRUE(told.count == 2 && told.paramArray[1].waitValue.value == 9);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    await(&words[0], 7);
    IS_TRUE(words[2] == 0);
    MUST(cuStreamWriteValue32_v2(other, on_device + 4, 9, 0));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words[2] == 8);

    last[0].writeValue.value = 80;
    told = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = told.ctx, .count = 1, .paramArray = last};
    EXPECT(CUDA_SUCCESS, cuGraphExecBatchMemOpNodeSetParams(exec, end, &told));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words[2] == 80);
    MUST(cuGraphBatchMemOpNodeGetParams(end, &told));
    IS_TRUE(told.count == 1 && told.paramArray[0].writeValue.value == 8);
    told.paramArray[0].writeValue.value = 90; /* in place, as programs change what they were told */
    EXPECT(CUDA_SUCCESS, cuGraphBatchMemOpNodeSetParams(end, &told));
    MUST(cuGraphBatchMemOpNodeGetParams(end, &told));
    IS_TRUE(told.paramArray[0].writeValue.value == 90);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

static void words_between_kernels(void)
{
    CUfunction step = get_kernel(module, "step");
    CUdeviceptr out = make_words(1, 1), mirror = out;
    CUstreamBatchMemOpParams op = {
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = out, .value = 5}};
    uint32_t factor = 10, value = 3, turns = SLOW;
    void *values[] = {&mirror, &factor, &value, &turns};
    CUDA_KERNEL_NODE_PARAMS launch = {.func = step,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = values};
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &launch));
    node = add_words(graph, &node, 1, &op, 1);
    MUST(cuGraphAddKernelNode_v2(&node, graph, &node, 1, &launch));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 0; round < 5; round++)
        MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(word_at(out) == 53);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuMemFree_v2(out));
}

/* A graph that was moved belongs to its node, and can still be asked about. */
static void children_are_moved(void)
{
    CUstreamBatchMemOpParams op = write_op(0, 33);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraph graph, inner, told;
    CUgraphNode node;
    CUgraphExec exec;
    size_t count = 0;

    memset(words, 0, 64);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphCreate(&inner, 0));
    add_words(inner, NULL, 0, &op, 1);
    params.graph.graph = inner;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    MUST(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    MUST(cuGraphChildGraphNodeGetGraph(node, &told));
    IS_TRUE(told == inner);
    MUST(cuGraphGetNodes(inner, NULL, &count));
    IS_TRUE(count == 1);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words[0] == 33);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

static atomic_uint ended;

static void count_end(void *user)
{
    ended += *(unsigned *)user;
}

static void await_ended(unsigned count)
{
    for (int i = 0; i < 60000 && ended != count; i++)
        usleep(1000);
    IS_TRUE(ended == count);
}

static CUuserObject make_object(unsigned *weight, unsigned references)
{
    CUuserObject object = NULL;

    MUST(cuUserObjectCreate(&object, weight, count_end, references,
                            CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return object;
}

static void objects_live_as_long_as_needed(void)
{
    unsigned one = 1, ten = 10, hundred = 100;
    CUuserObject object = make_object(&one, 2), none = NULL;
    CUgraph graph, clone;
    CUgraphExec exec;

    ended = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&none, &one, count_end, 0, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&none, &one, count_end, 1, 0));
    MUST(cuUserObjectRetain(object, 1));
    MUST(cuUserObjectRelease(object, 2));
    IS_TRUE(ended == 0);
    MUST(cuUserObjectRelease(object, 1));
    await_ended(1);

    /* A graph, its clone and its exec, each in its turn. */
    object = make_object(&ten, 1);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    MUST(cuGraphClone(&clone, graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    MUST(cuGraphDestroy(clone));
    usleep(10000);
    IS_TRUE(ended == 1);
    MUST(cuGraphExecDestroy(exec));
    await_ended(11);

    object = make_object(&hundred, 1);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphRetainUserObject(graph, object, 2, 0));
    MUST(cuUserObjectRelease(object, 1));
    MUST(cuGraphReleaseUserObject(graph, object, 1));
    usleep(10000);
    IS_TRUE(ended == 11);
    MUST(cuGraphReleaseUserObject(graph, object, 1));
    await_ended(111);
    MUST(cuGraphDestroy(graph));
}

/* A launch that is under way needs what its graph kept. */
static void launches_keep_objects(void)
{
    CUstreamBatchMemOpParams ops[] = {wait_op(0, 1), write_op(1, 1)};
    unsigned one = 1;
    CUuserObject object = make_object(&one, 1);
    CUgraphExec exec;
    CUgraph graph;

    ended = 0;
    memset(words, 0, 64);
    MUST(cuGraphCreate(&graph, 0));
    add_words(graph, NULL, 0, ops, 2);
    MUST(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    usleep(10000);
    IS_TRUE(ended == 0);
    MUST(cuStreamWriteValue32_v2(other, on_device, 1, 0));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words[1] == 1);
    await_ended(1);
}

static bool file_has(const char *path, const char *text)
{
    char content[8192];
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(content, 1, sizeof(content) - 1, file) : 0;

    content[size] = 0;
    if (file)
        fclose(file);
    return strstr(content, text) != NULL;
}

static void graphs_are_drawn(void)
{
    char path[64];
    CUgraph graph;
    CUgraphNode node;

    snprintf(path, sizeof(path), "/tmp/graph_nodes_%d.dot", (int)getpid());
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    MUST(cuGraphAddEmptyNode(&node, graph, &node, 1));
    EXPECT(CUDA_SUCCESS, cuGraphDebugDotPrint(graph, path, 0));
    IS_TRUE(file_has(path, "digraph") && file_has(path, "->") && file_has(path, "EMPTY"));
    remove(path);
    MUST(cuGraphDestroy(graph));
}

int main(void)
{
    check_open();
    module = load_kernels();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&on_device, words, 0));
    RUN(batches_go_one_by_one);
    RUN(words_in_graphs);
    RUN(words_between_kernels);
    RUN(children_are_moved);
    RUN(objects_live_as_long_as_needed);
    RUN(launches_keep_objects);
    RUN(graphs_are_drawn);
    MUST(cuMemFreeHost(words));
    MUST(cuStreamDestroy_v2(other));
    MUST(cuStreamDestroy_v2(stream));
    return check_close();
}
