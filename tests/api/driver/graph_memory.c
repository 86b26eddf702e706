/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate and free: within one launch, from one launch to what follows it, and
 * from one graph to another. The graphs are built by the program or captured.
 */
#include "check.h"

#include <string.h>

static CUmodule module;
static CUdevice device;
static CUcontext context;
static CUstream stream;

static CUgraphNode add_allocation(CUgraph graph, size_t size, CUdeviceptr *ret_address)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
        .bytesize = size,
    };
    CUgraphNode node = NULL;

    MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    IS_TRUE(params.dptr != 0);
    *ret_address = params.dptr;
    return node;
}

static CUgraphNode add_free(CUgraph graph, CUgraphNode before, CUdeviceptr address)
{
    CUgraphNode node = NULL;

    MUST(cuGraphAddMemFreeNode(&node, graph, &before, 1, address));
    return node;
}

static CUgraphNode add_fill(CUgraph graph, CUgraphNode before, CUdeviceptr out, uint32_t value,
                            size_t count)
{
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = out, .value = value, .elementSize = 4, .width = count, .height = 1};
    CUgraphNode node = NULL;

    MUST(cuGraphAddMemsetNode(&node, graph, &before, 1, &fill, context));
    return node;
}

static CUgraphNode add_copy(CUgraph graph, CUgraphNode before, CUdeviceptr out, CUdeviceptr in,
                            uint32_t count)
{
    void *values[] = {&out, &in, &count};
    const CUDA_KERNEL_NODE_PARAMS launch = {.func = get_kernel(module, "copy"),
                                            .gridDimX = 4,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 64,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = values};
    CUgraphNode node = NULL;

    MUST(cuGraphAddKernelNode_v2(&node, graph, &before, 1, &launch));
    return node;
}

static CUgraphExec instantiate(CUgraph graph, unsigned flags)
{
    CUgraphExec exec = NULL;

    MUST(cuGraphInstantiateWithFlags(&exec, graph, flags));
    return exec;
}

static void launch(CUgraphExec exec)
{
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
}

/* Allocated, used and freed in every launch. */
static void within_one_launch(void)
{
    CUdeviceptr out = make_words(1000, 0), scratch, told = 0;
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUgraphNodeType type;
    CUgraph graph, clone;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode first = add_allocation(graph, 4000, &scratch);
    CUgraphNode node = add_fill(graph, first, scratch, 17, 1000);
    node = add_copy(graph, node, out, scratch, 1000);
    node = add_free(graph, node, scratch);
    MUST(cuGraphNodeGetType(first, &type));
    IS_TRUE(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    MUST(cuGraphMemAllocNodeGetParams(first, &params));
    IS_TRUE(params.dptr == scratch && params.bytesize == 4000);
    MUST(cuGraphMemFreeNodeGetParams(node, &told));
    IS_TRUE(told == scratch);
    CUgraphExec exec = instantiate(graph, 0);
    for (int round = 0; round < 3; round++) {
        MUST(cuMemsetD32Async(out, 0, 1000, stream));
        launch(exec);
        IS_TRUE(words_are(out, 1000, 17));
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(scratch));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, &node, 1, scratch));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(node));
    CUgraphExec second = NULL;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&second, graph, 0));
    CUgraph outer;
    MUST(cuGraphCreate(&outer, 0));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
    MUST(cuGraphDestroy(outer));
    MUST(cuGraphExecDestroy(exec));
    exec = instantiate(graph, 0);
    launch(exec);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuMemFree_v2(out));
}

/* What a launch leaves allocated is the program's, as cuMemAllocAsync's would be. */
static void from_a_launch_to_the_program(void)
{
    CUdeviceptr memory;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode allocation = add_allocation(graph, 4096, &memory);
    add_fill(graph, allocation, memory, 5, 1024);
    CUgraphExec exec = instantiate(graph, 0);
    launch(exec);
    IS_TRUE(words_are(memory, 1024, 5));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream)); /* it is still allocated */
    MUST(cuMemFreeAsync(memory, stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(memory, stream));
    launch(exec);
    IS_TRUE(words_are(memory, 1024, 5));
    MUST(cuMemFree_v2(memory));
    launch(exec);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    IS_TRUE(words_are(memory, 1024, 5)); /* it outlives its graph */
    EXPECT(CUDA_SUCCESS, cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
}

static void from_graph_to_graph(void)
{
    CUdeviceptr out = make_words(1024, 0), memory;
    CUgraph maker, user;

    MUST(cuGraphCreate(&maker, 0));
    MUST(cuGraphCreate(&user, 0));
    CUgraphNode allocation = add_allocation(maker, 4096, &memory);
    add_fill(maker, allocation, memory, 6, 1024);
    CUgraphNode node;
    MUST(cuGraphAddEmptyNode(&node, user, NULL, 0));
    add_free(user, add_copy(user, node, out, memory, 1024), memory);
    CUgraphExec first = instantiate(maker, 0), second = instantiate(user, 0);
    for (int round = 0; round < 3; round++) {
        MUST(cuMemsetD32Async(out, 0, 1024, stream));
        MUST(cuGraphLaunch(first, stream));
        launch(second);
        IS_TRUE(words_are(out, 1024, 6));
    }
    MUST(cuGraphExecDestroy(first));
    MUST(cuGraphExecDestroy(second));
    MUST(cuGraphDestroy(maker));
    MUST(cuGraphDestroy(user));
    MUST(cuMemFree_v2(out));
}

static void freed_by_the_next_launch(void)
{
    CUdeviceptr memory;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode allocation = add_allocation(graph, 4096, &memory);
    add_fill(graph, allocation, memory, 7, 1024);
    CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int round = 0; round < 3; round++)
        launch(exec);
    IS_TRUE(words_are(memory, 1024, 7));
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

static void captured(void)
{
    CUdeviceptr out = make_words(1000, 0), scratch = 0, kept = 0, mirror;
    uint32_t count = 1000;
    void *values[] = {&out, &mirror, &count};
    CUgraph graph;
    size_t nodes = 0;

    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemAllocAsync(&scratch, 4000, stream));
    MUST(cuMemAllocAsync(&kept, 4000, stream));
    IS_TRUE(scratch && kept && scratch != kept);
    MUST(cuMemsetD32Async(scratch, 21, 1000, stream));
    MUST(cuMemsetD32Async(kept, 22, 1000, stream));
    mirror = scratch;
    launch_one(get_kernel(module, "copy"), stream, values);
    MUST(cuMemFreeAsync(scratch, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetNodes(graph, NULL, &nodes));
    IS_TRUE(nodes == 6);
    CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int round = 0; round < 3; round++) {
        MUST(cuMemsetD32Async(out, 0, 1000, stream));
        launch(exec);
        IS_TRUE(words_are(out, 1000, 21) && words_are(kept, 1000, 22));
    }
    MUST(cuMemFreeAsync(kept, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuMemFree_v2(out));
}

static uint64_t memory_of_graphs(CUgraphMem_attribute attribute)
{
    cuuint64_t value = 0;

    EXPECT(CUDA_SUCCESS, cuDeviceGetGraphMemAttribute(device, attribute, &value));
    return value;
}

static void use_is_counted(void)
{
    cuuint64_t zero = 0, one = 1;
    CUdeviceptr memory;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    add_allocation(graph, 8 << 20, &memory);
    CUgraphExec exec = instantiate(graph, 0);
    launch(exec);
    IS_TRUE(memory_of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 8 << 20);
    IS_TRUE(memory_of_graphs(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 8 << 20);
    IS_TRUE(memory_of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 8 << 20);
    MUST(cuMemFree_v2(memory));
    /* Freed, it is still the graph's. */
    IS_TRUE(memory_of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 8 << 20);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    EXPECT(CUDA_SUCCESS, cuDeviceGraphMemTrim(device));
    IS_TRUE(memory_of_graphs(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) < 8 << 20);
    EXPECT(CUDA_SUCCESS,
           cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
    IS_TRUE(memory_of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) < 8 << 20);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero));
}

static void mistakes(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}}};
    CUdeviceptr plain = make_words(4, 0), pooled, memory;
    CUgraphNode node;
    CUgraph graph;

    MUST(cuMemAllocAsync(&pooled, 4096, stream));

    MUST(cuGraphCreate(&graph, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, plain));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, 0));
    add_allocation(graph, 4096, &memory);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(memory)); /* no launch has allocated it */
    MUST(cuGraphDestroy(graph));
    /* A mistake that a capture outlives. */
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(pooled, stream));
    EXPECT(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(cuMemFreeAsync(pooled, stream));
    MUST(cuMemFree_v2(plain));
}

int main(void)
{
    device = check_open();
    module = load_kernels();
    MUST(cuCtxGetCurrent(&context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    RUN(within_one_launch);
    RUN(from_a_launch_to_the_program);
    RUN(from_graph_to_graph);
    RUN(freed_by_the_next_launch);
    RUN(captured);
    RUN(use_is_counted);
    RUN(mistakes);
    MUST(cuStreamDestroy_v2(stream));
    return check_close();
}
