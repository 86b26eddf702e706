/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of launches, streams and kernel nodes: which there are, what is kept of them, and
 * what a captured launch with them becomes.
 */
#include "check.h"

#include <string.h>

#include "cuda_graph.h"

static CUmodule module;
static CUfunction fill;
static CUstream stream, other;
static CUdeviceptr out;
static CUevent event;

static CUresult launch_with(CUlaunchAttribute *attributes, unsigned count, uint32_t value)
{
    uint32_t n = 64;
    void *values[] = {&out, &value, &n};
    const CUlaunchConfig config = {1, 1, 1, 64, 1, 1, 0, stream, attributes, count};

    return cuLaunchKernelEx(&config, fill, values, NULL);
}

/* Each attribute by itself, with a value that asks for nothing special. */
static CUresult launch_with_one(CUlaunchAttributeID id)
{
    CUlaunchAttribute attribute = {.id = id};

    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        attribute.value.programmaticEvent.event = event;
    if (id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
        attribute.value.launchCompletionEvent.event = event;
    return launch_with(&attribute, 1, 100 + id);
}

static void launches_take_what_there_is(void)
{
    static const CUlaunchAttributeID taken[] = {
        CU_LAUNCH_ATTRIBUTE_IGNORE,
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
        CU_LAUNCH_ATTRIBUTE_PRIORITY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
    };

    for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        MUST(cuMemsetD32Async(out, 0, 64, stream));
        EXPECT(CUDA_SUCCESS, launch_with_one(taken[i]));
        EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
        IS_TRUE(words_are(out, 64, 100 + taken[i]));
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, launch_with_one((CUlaunchAttributeID)15));
    EXPECT(CUDA_ERROR_INVALID_VALUE, launch_with_one((CUlaunchAttributeID)17));
    EXPECT(CUDA_ERROR_INVALID_VALUE, launch_with_one((CUlaunchAttributeID)-1));
}

static void kernels_change_no_nodes(void)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                   .value.deviceUpdatableKernelNode.deviceUpdatable = 1};

    EXPECT(CUDA_ERROR_NOT_SUPPORTED, launch_with(&attribute, 1, 1));
}

static void streams_keep_theirs(void)
{
    CUstreamAttrValue value = {.accessPolicyWindow = {.base_ptr = (void *)(uintptr_t)out,
                                                      .num_bytes = 128,
                                                      .hitRatio = 0.5f,
                                                      .hitProp = CU_ACCESS_PROPERTY_PERSISTING}};
    CUstreamAttrValue told;

    MUST(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told));
    IS_TRUE(told.syncPolicy == CU_SYNC_POLICY_AUTO);
    EXPECT(CUDA_SUCCESS,
           cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    EXPECT(CUDA_SUCCESS,
           cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &told));
    IS_TRUE(told.accessPolicyWindow.num_bytes == 128 && told.accessPolicyWindow.hitRatio == 0.5f);
    value = (CUstreamAttrValue){.syncPolicy = CU_SYNC_POLICY_YIELD};
    EXPECT(CUDA_SUCCESS,
           cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value = (CUstreamAttrValue){.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE};
    EXPECT(CUDA_SUCCESS, cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    EXPECT(CUDA_SUCCESS, cuStreamCopyAttributes(other, stream));
    MUST(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told));
    IS_TRUE(told.syncPolicy == CU_SYNC_POLICY_YIELD);
    MUST(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &told));
    IS_TRUE(told.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    MUST(cuMemsetD32Async(out, 0, 64, other));
    MUST(cuStreamSynchronize(other));
}

static void streams_have_not_all(void)
{
    CUstreamAttrValue value = {.priority = -1}, told;
    int priority = 0;

    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &told));
    EXPECT(CUDA_SUCCESS, cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    MUST(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
    IS_TRUE(told.priority == -1);
    MUST(cuStreamGetPriority(stream, &priority));
    IS_TRUE(priority == -1);
    value = (CUstreamAttrValue){.syncPolicy = (CUsynchronizationPolicy)77};
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value = (CUstreamAttrValue){.priority = 0};
    MUST(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
}

static void kernel_nodes_keep_theirs(void)
{
    uint32_t value = 5, n = 64;
    void *values[] = {&out, &value, &n};
    const CUDA_KERNEL_NODE_PARAMS params = {.func = fill,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 64,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = values};
    CUkernelNodeAttrValue attribute = {.nvlinkUtilCentricScheduling = 1}, told;
    CUgraphNode node, twin;
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    MUST(cuGraphAddKernelNode_v2(&twin, graph, &node, 1, &params));
    EXPECT(CUDA_SUCCESS, cuGraphKernelNodeSetAttribute(
                             node, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, &attribute));
    attribute = (CUkernelNodeAttrValue){.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE};
    EXPECT(CUDA_SUCCESS,
           cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &attribute));
    EXPECT(CUDA_SUCCESS, cuGraphKernelNodeCopyAttributes(twin, node));
    MUST(cuGraphKernelNodeGetAttribute(twin, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &told));
    IS_TRUE(told.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    MUST(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                       &told));
    IS_TRUE(told.deviceUpdatableKernelNode.deviceUpdatable == 0);
    attribute = (CUkernelNodeAttrValue){.deviceUpdatableKernelNode.deviceUpdatable = 1};
    EXPECT(CUDA_ERROR_NOT_SUPPORTED,
           cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                         &attribute));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphKernelNodeSetAttribute(
               node, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &attribute));
    MUST(cuMemsetD32_v2(out, 0, 64));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(out, 64, 5));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* The data of the only edge, and what the graph leaves. */
static CUgraphEdgeData end_and_run(uint32_t expected)
{
    CUgraphEdgeData data[4] = {{0}};
    CUgraphNode from[4], to[4];
    CUgraphExec exec;
    CUgraph graph;
    size_t count = 4;

    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetEdges_v2(graph, from, to, data, &count));
    IS_TRUE(count == 1);
    MUST(cuMemsetD32_v2(out, 0, 64));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(out, 64, expected));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    return data[0];
}

static bool is_programmatic(CUgraphEdgeData data, unsigned port)
{
    return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port == port &&
           data.to_port == 0;
}

static void programmatic_launches_are_edges(void)
{
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = 1};
    static const CUgraphEdgeData ordinary;

    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_SUCCESS, launch_with(NULL, 0, 6));
    EXPECT(CUDA_SUCCESS, launch_with(&early, 1, 7));
    IS_TRUE(is_programmatic(end_and_run(7), CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC));
    early.value.programmaticStreamSerializationAllowed = 0;
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_SUCCESS, launch_with(NULL, 0, 6));
    EXPECT(CUDA_SUCCESS, launch_with(&early, 1, 8));
    CUgraphEdgeData data = end_and_run(8);
    IS_TRUE(memcmp(&data, &ordinary, sizeof(data)) == 0);
    early.value.programmaticStreamSerializationAllowed = 1;
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemsetD32Async(out, 1, 64, stream)); /* is no kernel */
    EXPECT(CUDA_SUCCESS, launch_with(&early, 1, 9));
    data = end_and_run(9);
    IS_TRUE(memcmp(&data, &ordinary, sizeof(data)) == 0);
}

/* Another stream joins by the event of a launch: a kernel there, and back by an ordinary event. */
static void join_by(CUlaunchAttributeID id, unsigned port)
{
    CUlaunchAttribute attribute = {.id = id};
    uint32_t value = 12, n = 64;
    void *values[] = {&out, &value, &n};

    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        attribute.value.programmaticEvent.event = event;
    else
        attribute.value.launchCompletionEvent.event = event;
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_SUCCESS, launch_with(&attribute, 1, 11));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, other, values, NULL));
    MUST(cuEventRecord(event, other));
    MUST(cuStreamWaitEvent(stream, event, 0));
    IS_TRUE(is_programmatic(end_and_run(12), port));
}

static void events_of_launches_are_edges(void)
{
    join_by(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    join_by(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
}

int main(void)
{
    check_open();
    module = load_kernels();
    fill = get_kernel(module, "fill");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    out = make_words(64, 0);
    RUN(launches_take_what_there_is);
    RUN(kernels_change_no_nodes);
    RUN(streams_keep_theirs);
    RUN(streams_have_not_all);
    RUN(kernel_nodes_keep_theirs);
    RUN(programmatic_launches_are_edges);
    RUN(events_of_launches_are_edges);
    MUST(cuMemFree_v2(out));
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(other));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuModuleUnload(module));
    return check_close();
}
