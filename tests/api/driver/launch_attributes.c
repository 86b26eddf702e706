/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of launches, streams and kernel nodes: which there are, what is kept of them, and
 * what a captured launch with them becomes.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "cuda_graph.h"

static CUmodule module;
static CUfunction fill;
static CUstream stream, other;
static CUdeviceptr out;
static CUevent event, timed;

static CUresult launch_with(CUlaunchAttribute *attributes, unsigned count, uint32_t value)
{
    uint32_t n = 64;
    void *values[] = {&out, &value, &n};
    const CUlaunchConfig config = {1, 1, 1, 64, 1, 1, 0, stream, attributes, count};

    return cuLaunchKernelEx(&config, fill, values, NULL);
}

/* Each attribute by itself; the number goes where the attribute has one. */
static CUlaunchAttribute make(CUlaunchAttributeID id, int number)
{
    CUlaunchAttribute attribute = {.id = id};

    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        attribute.value.programmaticEvent.event = event;
    else if (id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
        attribute.value.launchCompletionEvent.event = event;
    else if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        attribute.value.memSyncDomainMap.default_ = (unsigned char)number;
    else if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        attribute.value.deviceUpdatableKernelNode.deviceUpdatable = number;
    else
        memcpy(&attribute.value, &number, sizeof(number));
    return attribute;
}

static void expect_launch(CUresult expected, CUlaunchAttribute attribute)
{
    uint32_t value = 100 + (uint32_t)attribute.id;
    bool taken = expected == CUDA_SUCCESS;

    MUST(cuMemsetD32Async(out, 0, 64, stream));
    CUresult result = launch_with(&attribute, 1, value);
    MUST(cuStreamSynchronize(stream));
    if (result != expected || !words_are(out, 64, taken ? value : 0))
        printf("attribute %d\n", (int)attribute.id);
    EXPECT(expected, result);
    IS_TRUE(words_are(out, 64, taken ? value : 0));
}

static void launches_take_what_there_is(void)
{
    static const struct {
        CUlaunchAttributeID id;
        int number;
        CUresult result;
    } launches[] = {
        {CU_LAUNCH_ATTRIBUTE_IGNORE, 0, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 0, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, 0, CUDA_ERROR_INVALID_VALUE},
        {CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, 1, CUDA_ERROR_INVALID_VALUE},
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 3, CUDA_ERROR_INVALID_VALUE},
        {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 0, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_PRIORITY, 0, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_PRIORITY, -100, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 3, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 4, CUDA_ERROR_INVALID_VALUE},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 2, CUDA_ERROR_INVALID_VALUE},
        {CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, 0, CUDA_SUCCESS},
        /* Only what is captured has a node. */
        {CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 0, CUDA_ERROR_NOT_SUPPORTED},
        {CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 1, CUDA_ERROR_NOT_SUPPORTED},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101, CUDA_ERROR_INVALID_VALUE},
        {CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 1, CUDA_SUCCESS},
        {CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 2, CUDA_ERROR_INVALID_VALUE},
        {(CUlaunchAttributeID)15, 0, CUDA_ERROR_INVALID_VALUE},
        {(CUlaunchAttributeID)17, 0, CUDA_ERROR_INVALID_VALUE},
        {(CUlaunchAttributeID)-1, 0, CUDA_ERROR_INVALID_VALUE},
    };

    for (unsigned i = 0; i < sizeof(launches) / sizeof(launches[0]); i++)
        expect_launch(launches[i].result, make(launches[i].id, launches[i].number));
}

static void launches_take_plain_events(void)
{
    CUlaunchAttribute programmatic = make(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 0);
    CUlaunchAttribute completion = make(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, 0);

    programmatic.value.programmaticEvent.event = timed;
    expect_launch(CUDA_ERROR_NOT_SUPPORTED, programmatic);
    completion.value.launchCompletionEvent.event = timed;
    expect_launch(CUDA_ERROR_NOT_SUPPORTED, completion);
    programmatic.value.programmaticEvent.event = NULL;
    expect_launch(CUDA_ERROR_INVALID_HANDLE, programmatic);
    completion.value.launchCompletionEvent.event = event;
    completion.value.launchCompletionEvent.flags = 2;
    expect_launch(CUDA_ERROR_INVALID_VALUE, completion);
    completion.value.launchCompletionEvent.flags = CU_EVENT_RECORD_EXTERNAL;
    expect_launch(CUDA_ERROR_ILLEGAL_STATE, completion);
}

static void streams_keep_theirs(void)
{
    CUstreamAttrValue value = {.accessPolicyWindow = {.base_ptr = (void *)(uintptr_t)out,
                                                      .num_bytes = 128,
                                                      .hitRatio = 0.5f,
                                                      .hitProp = CU_ACCESS_PROPERTY_PERSISTING}};
    CUstreamAttrValue told;

    MUST(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told));
    IS_TRUE((int)told.syncPolicy == -1);
    MUST(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &told));
    IS_TRUE(told.memSyncDomainMap.default_ == 0 && told.memSyncDomainMap.remote == 1);
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
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, &told));
    value = (CUstreamAttrValue){.memSyncDomainMap = {4, 0}};
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
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
    MUST(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &told));
    IS_TRUE(told.memSyncDomainMap.default_ == 0 && told.memSyncDomainMap.remote == 1);
    /* These may be set or launched, and are not told. */
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
                                         &told));
    attribute = (CUkernelNodeAttrValue){0};
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                         &attribute));
    attribute = (CUkernelNodeAttrValue){.clusterDim = {1, 0, 0}};
    EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE,
           cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &attribute));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphKernelNodeSetAttribute(
               node, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &attribute));
    MUST(cuMemsetD32Async(out, 0, 64, stream));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(out, 64, 5));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* The data of the only edge, and what the graph leaves: `either` where two kernels may overlap. */
static CUgraphEdgeData end_and_run_either(uint32_t expected, uint32_t either)
{
    CUgraphEdgeData data[4] = {{0}};
    CUgraphNode from[4], to[4];
    CUgraphExec exec;
    CUgraph graph;
    size_t count = 4;

    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetEdges_v2(graph, from, to, data, &count));
    IS_TRUE(count == 1);
    MUST(cuMemsetD32Async(out, 0, 64, stream));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t word = word_at(out + i * sizeof(word));

        IS_TRUE(word == expected || word == either);
    }
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    return data[0];
}

static CUgraphEdgeData end_and_run(uint32_t expected)
{
    return end_and_run_either(expected, expected);
}

static bool is_edge(CUgraphEdgeData data, unsigned port, unsigned type)
{
    return data.from_port == port && data.type == type && data.to_port == 0;
}

#define PROGRAMMATIC CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
#define ORDINARY CU_GRAPH_KERNEL_NODE_PORT_DEFAULT, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT

static void programmatic_launches_are_edges(void)
{
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = 1};

    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_SUCCESS, launch_with(NULL, 0, 6));
    EXPECT(CUDA_SUCCESS, launch_with(&early, 1, 7));
    IS_TRUE(is_edge(end_and_run(7), PROGRAMMATIC));
    early.value.programmaticStreamSerializationAllowed = 0;
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_SUCCESS, launch_with(NULL, 0, 6));
    EXPECT(CUDA_SUCCESS, launch_with(&early, 1, 8));
    IS_TRUE(is_edge(end_and_run(8), ORDINARY));
    early.value.programmaticStreamSerializationAllowed = 1;
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemsetD32Async(out, 1, 64, stream)); /* is no kernel */
    EXPECT(CUDA_SUCCESS, launch_with(&early, 1, 9));
    IS_TRUE(is_edge(end_and_run(9), ORDINARY));
}

/* Another stream joins by the event of a launch: a kernel there, or something else, and back by an
 * ordinary event. Most such events come before the end of the launch, so the two may overlap. */
static CUgraphEdgeData join_by(CUlaunchAttribute attribute, bool by_kernel)
{
    uint32_t value = 12, n = 64;
    void *values[] = {&out, &value, &n};

    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_SUCCESS, launch_with(&attribute, 1, 11));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    if (by_kernel)
        EXPECT(CUDA_SUCCESS, cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, other, values, NULL));
    else
        MUST(cuMemsetD32Async(out, value, 64, other));
    MUST(cuEventRecord(event, other));
    MUST(cuStreamWaitEvent(stream, event, 0));
    return end_and_run_either(12, 11);
}

static void events_of_launches_are_edges(void)
{
    CUlaunchAttribute attribute = make(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 0);

    IS_TRUE(is_edge(join_by(attribute, true), PROGRAMMATIC));
    attribute.value.programmaticEvent.triggerAtBlockStart = 1;
    IS_TRUE(is_edge(join_by(attribute, true), CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC));
    attribute = make(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, 0);
    IS_TRUE(is_edge(join_by(attribute, true), CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                    CU_GRAPH_DEPENDENCY_TYPE_DEFAULT));
    IS_TRUE(is_edge(join_by(attribute, false), CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                    CU_GRAPH_DEPENDENCY_TYPE_DEFAULT));
}

static CUgraphNode add_fill(CUgraph graph)
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
    CUgraphNode node;

    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    return node;
}

/* Of all data that an edge could have, four are possible. */
static void edges_have_ports_of_kernels(void)
{
    static const CUgraphEdgeData possible[] = {{.from_port = 0},
                                               {.from_port = 1, .type = 1},
                                               {.from_port = 2},
                                               {.from_port = 2, .type = 1}};

    for (unsigned i = 0; i < 4 * 2 * 3; i++) {
        const CUgraphEdgeData data = {.from_port = (unsigned char)(i % 4),
                                      .to_port = (unsigned char)(i / 4 % 2),
                                      .type = (unsigned char)(i / 8)};
        CUresult expected = CUDA_ERROR_INVALID_VALUE;
        CUgraph graph;

        for (unsigned j = 0; j < 4; j++)
            if (memcmp(&data, &possible[j], sizeof(data)) == 0)
                expected = CUDA_SUCCESS;
        MUST(cuGraphCreate(&graph, 0));
        CUgraphNode from = add_fill(graph), to = add_fill(graph);
        EXPECT(expected, cuGraphAddDependencies_v2(graph, &from, &to, &data, 1));
        MUST(cuGraphDestroy(graph));
    }
}

/* NVIDIA's driver lets kernels change such nodes; Funnel and the software GPU do not. */
static void kernels_change_nodes_or_not(void)
{
    CUkernelNodeAttrValue value = {.deviceUpdatableKernelNode.deviceUpdatable = 1};
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    CUgraphNode node = add_fill(graph);
    CUresult result = cuGraphKernelNodeSetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);
    IS_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED);
    MUST(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                       &value));
    IS_TRUE((value.deviceUpdatableKernelNode.deviceUpdatable == 1) == (result == CUDA_SUCCESS));
    MUST(cuGraphDestroy(graph));
}

int main(void)
{
    check_open();
    module = load_kernels();
    fill = get_kernel(module, "fill");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    out = make_words(64, 0);
    RUN(launches_take_what_there_is);
    RUN(launches_take_plain_events);
    RUN(streams_keep_theirs);
    RUN(streams_have_not_all);
    RUN(kernel_nodes_keep_theirs);
    RUN(programmatic_launches_are_edges);
    RUN(events_of_launches_are_edges);
    RUN(edges_have_ports_of_kernels);
    RUN(kernels_change_nodes_or_not);
    MUST(cuMemFree_v2(out));
    MUST(cuEventDestroy_v2(timed));
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(other));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuModuleUnload(module));
    return check_close();
}
