/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that a program builds itself: nodes of every kind, their order, and what may be changed of
 * a graph that can be launched.
 */
#include <string.h>

#include "check.h"

static CUmodule module;
static CUfunction step;
static CUcontext context;
static CUstream stream;

static CUgraphNode add_step(CUgraph graph, const CUgraphNode *dependencies, size_t count,
                            CUdeviceptr out, uint32_t factor, uint32_t value)
{
    uint32_t turns = SLOW;
    void *params[] = {&out, &factor, &value, &turns};
    const CUDA_KERNEL_NODE_PARAMS launch = {.func = step,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 1,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = params};
    CUgraphNode node = NULL;

    MUST(cuGraphAddKernelNode_v2(&node, graph, dependencies, count, &launch));
    return node;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec = NULL;

    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void launch(CUgraphExec exec)
{
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
}

static void end(CUgraphExec exec, CUgraph graph)
{
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* ((1 * 2 + 3) * 5 + 7), whatever the order of adding. */
static void kernels_in_order(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode second = add_step(graph, NULL, 0, word, 5, 7);
    CUgraphNode first = add_step(graph, NULL, 0, word, 2, 3);
    MUST(cuGraphAddDependencies(graph, &first, &second, 1));
    CUgraphExec exec = instantiate(graph);
    launch(exec);
    IS_TRUE(word_at(word) == 32);
    MUST(cuGraphLaunch(exec, stream));
    launch(exec);
    IS_TRUE(word_at(word) == ((32 * 2 + 3) * 5 + 7) * 10 + 22);
    end(exec, graph);
    MUST(cuMemFree_v2(word));
}

/* Programs keep the array that they were told, write an entry and set the node by it, each time. */
static void parameters_are_set_in_place(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUDA_KERNEL_NODE_PARAMS told;
    CUgraphExecUpdateResultInfo info;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode node = add_step(graph, NULL, 0, word, 0, 3);
    CUgraphExec exec = instantiate(graph);
    MUST(cuGraphKernelNodeGetParams_v2(node, &told));
    IS_TRUE(told.func == step && told.kernelParams && !told.extra);
    for (uint32_t value = 10; value < 15; value++) {
        told.kernelParams[2] = &value;
        MUST(cuGraphKernelNodeSetParams_v2(node, &told));
        IS_TRUE(told.kernelParams[2] != &value);
        MUST(cuGraphExecUpdate_v2(exec, graph, &info));
        launch(exec);
        IS_TRUE(word_at(word) == value);
    }
    end(exec, graph);
    MUST(cuMemFree_v2(word));
}

static void graph_lives_on_in_exec(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    add_step(graph, NULL, 0, word, 2, 3);
    CUgraphExec exec = instantiate(graph);
    add_step(graph, NULL, 0, word, 100, 100);
    MUST(cuGraphDestroy(graph));
    launch(exec);
    IS_TRUE(word_at(word) == 5);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuMemFree_v2(word));
}

static void add_up(void *user)
{
    uint32_t *words = user;

    words[1] = words[0] + 1;
}

static CUDA_MEMCPY3D line(CUdeviceptr device, void *host, bool to_device, size_t size)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = size, .Height = 1, .Depth = 1};

    copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcHost = copy.dstHost = host;
    copy.srcDevice = copy.dstDevice = device;
    return copy;
}

/* memset, kernel, copy out, host function, copy in. */
static void every_kind(void)
{
    CUdeviceptr word = make_words(1, 0);
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = word, .value = 4, .elementSize = 4, .width = 1, .height = 1};
    CUgraphNode node, join;
    CUgraph graph;
    uint32_t *host;

    MUST(cuMemAllocHost_v2((void **)&host, 8));
    const CUDA_HOST_NODE_PARAMS call = {.fn = add_up, .userData = host};
    const CUDA_MEMCPY3D out = line(word, host, false, 4), in = line(word, host + 1, true, 4);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
    node = add_step(graph, &node, 1, word, 10, 2);
    MUST(cuGraphAddMemcpyNode(&node, graph, &node, 1, &out, context));
    MUST(cuGraphAddEmptyNode(&join, graph, &node, 1));
    MUST(cuGraphAddHostNode(&node, graph, &join, 1, &call));
    MUST(cuGraphAddMemcpyNode(&node, graph, &node, 1, &in, context));
    CUgraphExec exec = instantiate(graph);
    launch(exec);
    IS_TRUE(host[0] == 42);
    IS_TRUE(word_at(word) == 43);
    end(exec, graph);
    MUST(cuMemFreeHost(host));
    MUST(cuMemFree_v2(word));
}

static void child_graphs(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUgraph graph, inner;
    CUgraphNode node, child;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphCreate(&inner, 0));
    node = add_step(inner, NULL, 0, word, 3, 1);
    add_step(inner, &node, 1, word, 5, 0);
    node = add_step(graph, NULL, 0, word, 2, 0);
    MUST(cuGraphAddChildGraphNode(&child, graph, &node, 1, inner));
    add_step(graph, &child, 1, word, 10, 1);
    MUST(cuGraphDestroy(inner));
    CUgraphExec exec = instantiate(graph);
    launch(exec);
    IS_TRUE(word_at(word) == ((1 * 2 * 3 + 1) * 5) * 10 + 1);
    end(exec, graph);
    MUST(cuMemFree_v2(word));
}

static void events_in_graphs(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUgraph graph;
    CUgraphNode node;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuGraphCreate(&graph, 0));
    node = add_step(graph, NULL, 0, word, 2, 3);
    MUST(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
    CUgraphExec exec = instantiate(graph);
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    IS_TRUE(word_at(word) == 5);
    end(exec, graph);
    MUST(cuEventDestroy_v2(event));
    MUST(cuMemFree_v2(word));
}

/* A copy of an exec stays between the kinds of memory that it was made for, whether it is set alone
 * or by another graph. What a captured call says about them counts. */
static void copies_keep_their_kind(void)
{
    CUdeviceptr words = make_words(8, 1);
    CUgraphExecUpdateResultInfo info;
    CUgraph graph, other;
    CUgraphNode node, refused;
    uint32_t *host;
    size_t one = 1;

    MUST(cuMemAllocHost_v2((void **)&host, 32));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemcpyHtoDAsync_v2(words, host, 4, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetNodes(graph, &node, &one));
    CUgraphExec exec = instantiate(graph);
    CUDA_MEMCPY3D copy = line(words + 4, host, true, 8);
    EXPECT(CUDA_SUCCESS, cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
    host[0] = 5;
    host[1] = 6;
    launch(exec);
    IS_TRUE(word_at(words) == 1 && word_at(words + 4) == 5 && word_at(words + 8) == 6);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = words + 16;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
    copy = line(words, host, false, 4);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
    MUST(cuGraphCreate(&other, 0));
    MUST(cuGraphAddMemcpyNode(&refused, other, NULL, 0, &copy, context));
    EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
    IS_TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
    IS_TRUE(info.errorNode == refused);
    copy = line(words, host, true, 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphAddMemcpyNode(&refused, other, NULL, 0, &copy, context));
    launch(exec);
    IS_TRUE(word_at(words + 8) == 6);
    MUST(cuGraphDestroy(other));
    end(exec, graph);
    MUST(cuMemFreeHost(host));
    MUST(cuMemFree_v2(words));
}

/* The addresses of such a copy decide, and may become those of other memory. */
static void captured_copies_between_any_memory(void)
{
    CUdeviceptr words = make_words(2, 3);
    CUDA_MEMCPY3D told;
    CUgraph graph;
    CUgraphNode node;
    uint32_t *host;
    size_t one = 1;

    MUST(cuMemAllocHost_v2((void **)&host, 4));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemcpyAsync(words, (CUdeviceptr)host, 4, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetNodes(graph, &node, &one));
    MUST(cuGraphMemcpyNodeGetParams(node, &told));
    IS_TRUE(told.srcMemoryType == CU_MEMORYTYPE_UNIFIED);
    IS_TRUE(told.dstMemoryType == CU_MEMORYTYPE_UNIFIED);
    CUgraphExec exec = instantiate(graph);
    *host = 9;
    launch(exec);
    IS_TRUE(word_at(words) == 9 && word_at(words + 4) == 3);
    MUST(cuMemsetD32_v2(words, 4, 1));
    told.srcDevice = words;
    told.dstDevice = words + 4;
    EXPECT(CUDA_SUCCESS, cuGraphExecMemcpyNodeSetParams(exec, node, &told, context));
    launch(exec);
    IS_TRUE(word_at(words + 4) == 4);
    end(exec, graph);
    MUST(cuMemFreeHost(host));
    MUST(cuMemFree_v2(words));
}

static void nodes_of_an_exec_change(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUgraph graph;
    CUDA_KERNEL_NODE_PARAMS params;
    uint32_t turns = SLOW, factor = 7, value = 1;
    void *other[] = {&word, &factor, &value, &turns};
    unsigned enabled = 7;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode node = add_step(graph, NULL, 0, word, 2, 3);
    CUgraphExec exec = instantiate(graph);
    MUST(cuGraphKernelNodeGetParams_v2(node, &params));
    IS_TRUE(*(uint32_t *)params.kernelParams[2] == 3);
    params.kernelParams = other;
    MUST(cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    launch(exec);
    IS_TRUE(word_at(word) == 8);
    MUST(cuGraphNodeSetEnabled(exec, node, 0));
    MUST(cuGraphNodeGetEnabled(exec, node, &enabled));
    IS_TRUE(enabled == 0);
    launch(exec);
    IS_TRUE(word_at(word) == 8);
    MUST(cuGraphNodeSetEnabled(exec, node, 1));
    launch(exec);
    IS_TRUE(word_at(word) == 57);
    end(exec, graph);
    MUST(cuMemFree_v2(word));
}

static void execs_learn_from_graphs(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUgraphExecUpdateResultInfo info;
    CUgraph graph, other;
    CUgraphNode node;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphCreate(&other, 0));
    node = add_step(graph, NULL, 0, word, 2, 3);
    add_step(graph, &node, 1, word, 2, 3);
    node = add_step(other, NULL, 0, word, 10, 1);
    add_step(other, &node, 1, word, 10, 2);
    CUgraphExec exec = instantiate(graph);
    MUST(cuGraphExecUpdate_v2(exec, other, &info));
    IS_TRUE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    launch(exec);
    IS_TRUE(word_at(word) == 112);
    add_step(other, NULL, 0, word, 10, 3);
    EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
    IS_TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    MUST(cuGraphDestroy(other));
    end(exec, graph);
    MUST(cuMemFree_v2(word));
}

static void shapes_are_told(void)
{
    CUgraph graph, clone;
    CUgraphNode a, b, nodes[4], found;
    CUgraphNodeType type;
    size_t count = 4;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&a, graph, NULL, 0));
    MUST(cuGraphAddEmptyNode(&b, graph, &a, 1));
    MUST(cuGraphGetNodes(graph, nodes, &count));
    IS_TRUE(count == 2 && nodes[2] == NULL);
    count = 4;
    MUST(cuGraphGetRootNodes(graph, nodes, &count));
    IS_TRUE(count == 1 && nodes[0] == a);
    MUST(cuGraphGetEdges(graph, NULL, NULL, &count));
    IS_TRUE(count == 1);
    MUST(cuGraphClone(&clone, graph));
    MUST(cuGraphNodeFindInClone(&found, b, clone));
    MUST(cuGraphNodeGetType(found, &type));
    IS_TRUE(type == CU_GRAPH_NODE_TYPE_EMPTY);
    MUST(cuGraphDestroyNode(a));
    MUST(cuGraphNodeGetDependencies(b, NULL, &count));
    IS_TRUE(count == 0);
    MUST(cuGraphDestroy(clone));
    MUST(cuGraphDestroy(graph));
}

static void launch_step(CUstream where, CUdeviceptr out, uint32_t factor, uint32_t value)
{
    uint32_t turns = SLOW;
    void *params[] = {&out, &factor, &value, &turns};

    launch_one(step, where, params);
}

/* Two streams: the second joins by an event, and is joined by one. */
static void streams_are_captured(void)
{
    CUdeviceptr word = make_words(1, 1);
    CUstreamCaptureStatus status;
    CUgraph graph;
    CUstream other;
    CUevent event;

    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemsetD32Async(word, 4, 1, stream));
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
    launch_step(other, word, 10, 2);
    MUST(cuStreamIsCapturing(other, &status));
    IS_TRUE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    MUST(cuEventRecord(event, other));
    MUST(cuStreamWaitEvent(stream, event, 0));
    launch_step(stream, word, 10, 3);
    MUST(cuStreamEndCapture(stream, &graph));
    IS_TRUE(word_at(word) == 1);
    CUgraphExec exec = instantiate(graph);
    launch(exec);
    IS_TRUE(word_at(word) == 423);
    end(exec, graph);
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(other));
    MUST(cuMemFree_v2(word));
}

static void captures_go_wrong(void)
{
    CUgraph graph;

    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    MUST(cuStreamSynchronize(stream));
}

int main(void)
{
    check_open();
    module = load_kernels();
    step = get_kernel(module, "step");
    MUST(cuCtxGetCurrent(&context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    RUN(kernels_in_order);
    RUN(parameters_are_set_in_place);
    RUN(graph_lives_on_in_exec);
    RUN(every_kind);
    RUN(child_graphs);
    RUN(events_in_graphs);
    RUN(copies_keep_their_kind);
    RUN(captured_copies_between_any_memory);
    RUN(nodes_of_an_exec_change);
    RUN(execs_learn_from_graphs);
    RUN(shapes_are_told);
    RUN(streams_are_captured);
    RUN(captures_go_wrong);
    MUST(cuStreamDestroy_v2(stream));
    return check_close();
}
