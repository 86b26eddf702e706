/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures that are used wrongly: each mistake has an error of its own, and all is well again when
 * the capture has ended.
 */
#include "check.h"

#include <pthread.h>

static CUstream stream, other;
static CUevent event;
static CUdeviceptr word;

static CUstreamCaptureStatus status_of(CUstream of)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    EXPECT(CUDA_SUCCESS, cuStreamIsCapturing(of, &status));
    return status;
}

static void begin(CUstream on, CUstreamCaptureMode mode)
{
    MUST(cuStreamBeginCapture_v2(on, mode));
}

/* Ends a capture that went wrong, and sees that the stream works. */
static void end_broken(CUresult expected)
{
    CUgraph graph = NULL;

    EXPECT(expected, cuStreamEndCapture(stream, &graph));
    IS_TRUE(graph == NULL);
    IS_TRUE(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT(CUDA_SUCCESS, cuMemsetD32Async(word, 1, 1, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
}

static void end_well(CUstream on)
{
    CUgraph graph = NULL;

    EXPECT(CUDA_SUCCESS, cuStreamEndCapture(on, &graph));
    EXPECT(CUDA_SUCCESS, cuGraphDestroy(graph));
}

static void waiting_for_a_captured_stream(void)
{
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    IS_TRUE(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD32Async(word, 1, 1, stream));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void captures_do_not_merge(void)
{
    CUgraph graph = NULL;

    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    begin(other, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_ERROR_ILLEGAL_STATE,
           cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuEventRecord(event, other));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(stream, event, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(other, &graph));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void only_the_origin_ends(void)
{
    CUgraph graph = NULL;

    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
    MUST(cuMemsetD32Async(word, 2, 1, other));
    IS_TRUE(status_of(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &graph));
    (void)cuStreamEndCapture(stream, &graph);
    IS_TRUE(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
}

static void work_that_nobody_joins(void)
{
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
    MUST(cuMemsetD32Async(word, 2, 1, other));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    IS_TRUE(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
}

/* The node behind all that the stream has captured. */
static CUgraphNode add_behind(CUstream captured)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *tails;
    const CUgraphEdgeData *edges;
    CUgraphNode node;
    CUgraph graph;
    size_t count;

    MUST(cuStreamGetCaptureInfo_v3(captured, &status, NULL, &graph, &tails, &edges, &count));
    MUST(cuGraphAddEmptyNode(&node, graph, tails, count));
    return node;
}

/* What a program has put in the place of captured work it need not join, nor that work. */
static void set_dependencies_need_no_join(void)
{
    CUgraphNode behind;
    CUgraph graph = NULL;

    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
    MUST(cuMemsetD32Async(word, 2, 1, other));
    behind = add_behind(other);
    MUST(cuStreamUpdateCaptureDependencies(other, &behind, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    EXPECT(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
    if (graph)
        MUST(cuGraphDestroy(graph));
}

/* Work behind such a node is captured as any other. */
static void work_behind_set_dependencies_is_joined(void)
{
    CUgraphNode behind;

    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
    behind = add_behind(other);
    MUST(cuStreamUpdateCaptureDependencies(other, &behind, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    MUST(cuMemsetD32Async(word, 2, 1, other));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

/* Begins a capture that `joined`, a new stream, takes part in with a node of its own. */
static void begin_with(CUstream joined)
{
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuMemsetD32Async(word, 1, 1, stream));
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(joined, event, 0));
    MUST(cuMemsetD32Async(word, 2, 1, joined));
    MUST(cuEventRecord(event, joined));
}

/* Ends a capture of three nodes, of which the last writes `expected`. */
static void end_and_replay(unsigned expected)
{
    CUgraph graph = NULL;
    CUgraphExec exec;
    size_t count = 0;

    EXPECT(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
    if (!graph)
        return;
    MUST(cuGraphGetNodes(graph, NULL, &count));
    IS_TRUE(count == 3);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(word_at(word) == expected);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* A stream that took part may go before the capture ends, if its work has been joined then. */
static void joined_streams_may_go(void)
{
    CUstream joined;

    MUST(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
    begin_with(joined);
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(joined));
    IS_TRUE(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(CUDA_SUCCESS, cuMemsetD32Async(word, 3, 1, stream));
    end_and_replay(3);
    MUST(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
    begin_with(joined);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(joined));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
    EXPECT(CUDA_SUCCESS, cuMemsetD32Async(word, 4, 1, stream));
    end_and_replay(4);
}

/* What was recorded for real cannot be waited for inside a graph. */
static void no_way_in_from_outside(void)
{
    MUST(cuMemsetD32Async(word, 2, 1, other));
    MUST(cuEventRecord(event, other));
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, event, 0));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void the_legacy_stream_would_wait(void)
{
    CUgraph graph = NULL;
    CUstream blocking;

    MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED));
    begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32Async(word, 3, 1, CU_STREAM_LEGACY));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
    MUST(cuMemsetD32Async(word, 3, 1, CU_STREAM_LEGACY));
    MUST(cuStreamDestroy_v2(blocking));
}

static void captured_events_tell_nothing(void)
{
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord(event, stream));
    EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord(event, stream));
    EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(event));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    MUST(cuEventRecord(event, stream));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
}

static CUcontext context;

static void *end_elsewhere(void *result)
{
    CUgraph graph = NULL;

    cuCtxSetCurrent(context);
    *(CUresult *)result = cuStreamEndCapture(stream, &graph);
    if (graph)
        cuGraphDestroy(graph);
    return NULL;
}

static CUresult end_in_another_thread(void)
{
    CUresult result = CUDA_ERROR_UNKNOWN;
    pthread_t thread;

    pthread_create(&thread, NULL, end_elsewhere, &result);
    pthread_join(thread, NULL);
    return result;
}

static void threads_end_their_own(void)
{
    CUgraph graph = NULL;

    begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, end_in_another_thread());
    (void)cuStreamEndCapture(stream, &graph);
    IS_TRUE(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    if (graph)
        MUST(cuGraphDestroy(graph));
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_SUCCESS, end_in_another_thread());
}

/* What might wait for all streams: forbidden by the mode of the capture, unless the thread's own
 * says that it knows better. */
static void modes_forbid_and_allow(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr memory;

    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&memory, 4096));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_SUCCESS, cuMemAlloc_v2(&memory, 4096));
    end_well(stream);
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(memory));
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    IS_TRUE(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT(CUDA_SUCCESS, cuMemAlloc_v2(&memory, 4096));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    IS_TRUE(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    end_well(stream);
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(memory));
}

static uint8_t pageable[4096];
static void *pinned;

static CUresult call_synchronize(void)
{
    return cuCtxSynchronize();
}

static CUresult call_synchronize_v2(void)
{
    return cuCtxSynchronize_v2(context);
}

static CUresult call_free(void)
{
    return cuMemFree_v2(word);
}

static CUresult call_host_alloc(void)
{
    void *memory;

    return cuMemHostAlloc(&memory, 4096, 0);
}

static CUresult call_free_host(void)
{
    return cuMemFreeHost(pinned);
}

static CUresult call_host_register(void)
{
    return cuMemHostRegister_v2(pageable, sizeof(pageable), 0);
}

/* Each waits for all streams, or may do so: it does not run, and the capture is over. */
static void unsafe_calls_end_captures(void)
{
    CUresult (*const calls[])(void) = {call_synchronize, call_synchronize_v2, call_free,
                                       call_host_alloc,  call_free_host,      call_host_register};

    MUST(cuMemHostAlloc(&pinned, 4096, 0));
    for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
        EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, calls[i]());
        end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, calls[i]());
        end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    MUST(cuMemFreeHost(pinned));
    MUST(cuMemHostRegister_v2(pageable, sizeof(pageable), 0));
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemHostUnregister(pageable));
    end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    MUST(cuMemHostUnregister(pageable));
}

/* A graph that is there already grows by what is captured. */
static void captured_into_a_graph(void)
{
    const CUgraphNode *tails = NULL;
    CUstreamCaptureStatus status;
    CUgraph graph, told = NULL;
    CUgraphNode root, tail;
    CUgraphExec exec;
    cuuint64_t id = 0;
    size_t count = 0;

    MUST(cuMemsetD32Async(word, 0, 1, stream));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&root, graph, NULL, 0));
    MUST(
        cuStreamBeginCaptureToGraph(stream, graph, &root, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemsetD32Async(word, 6, 1, stream));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, &id, &told, &tails, &count));
    IS_TRUE(id != 0 && told == graph && count == 1);
    tail = tails[0];
    MUST(cuStreamUpdateCaptureDependencies(stream, &root, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &tails, &count));
    IS_TRUE(count == 1 && tails[0] == root);
    MUST(cuStreamUpdateCaptureDependencies(stream, &tail, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &tails, &count));
    IS_TRUE(count == 2);
    MUST(cuStreamEndCapture(stream, &told));
    IS_TRUE(told == graph);
    MUST(cuGraphGetNodes(graph, NULL, &count));
    IS_TRUE(count == 2);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(word_at(word) == 6);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* cuDNN and XLA capture a plan with made-up addresses, and look at its nodes. */
static void addresses_are_not_looked_at(void)
{
    CUDA_MEMSET_NODE_PARAMS params;
    CUgraphNode node;
    CUgraph graph = NULL;
    size_t count = 0;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(0x80, 1, 16, stream));
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CUDA_SUCCESS, cuMemsetD8Async(0x80, 1, 0, stream));
    EXPECT(CUDA_SUCCESS, cuMemsetD8Async(0x80, 1, 16, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetNodes(graph, NULL, &count));
    IS_TRUE(count == 1);
    MUST(cuGraphGetNodes(graph, &node, &count));
    MUST(cuGraphMemsetNodeGetParams(node, &params));
    IS_TRUE(params.dst == 0x80 && params.width * params.elementSize == 16);
    MUST(cuGraphDestroy(graph));
}

int main(void)
{
    check_open();
    MUST(cuCtxGetCurrent(&context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    word = make_words(1, 0);
    RUN(waiting_for_a_captured_stream);
    RUN(captures_do_not_merge);
    RUN(only_the_origin_ends);
    RUN(work_that_nobody_joins);
    RUN(set_dependencies_need_no_join);
    RUN(work_behind_set_dependencies_is_joined);
    RUN(joined_streams_may_go);
    RUN(no_way_in_from_outside);
    RUN(the_legacy_stream_would_wait);
    RUN(captured_events_tell_nothing);
    RUN(threads_end_their_own);
    RUN(modes_forbid_and_allow);
    RUN(unsafe_calls_end_captures);
    RUN(captured_into_a_graph);
    RUN(addresses_are_not_looked_at);
    MUST(cuMemFree_v2(word));
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(other));
    MUST(cuStreamDestroy_v2(stream));
    return check_close();
}
