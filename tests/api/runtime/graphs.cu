// SPDX-License-Identifier: Apache-2.0
// Graphs through the runtime: the calls that torch.cuda.graph makes, in their order, and what the
// runtime adds to the driver's graphs.
#include "graph_work.cuh"

#include <unistd.h>

#include <atomic>

// A caching allocator asks the driver for memory in the middle of a capture, in relaxed mode.
static float *allocate_while_capturing(cudaStream_t stream)
{
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    float *memory = nullptr;

    EXPECT(cudaSuccess, cudaStreamGetCaptureInfo(stream, &status, &id));
    IS_TRUE(status == cudaStreamCaptureStatusActive && id != 0);
    EXPECT(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
    MUST(cudaMalloc(&memory, COUNT * sizeof(float)));
    EXPECT(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
    return memory;
}

static std::atomic<unsigned> states_ended;

static void CUDART_CB end_state(void *)
{
    states_ended++;
}

// The state of the random numbers has to live as long as the graph that uses it.
static void keep_a_state(cudaStream_t stream)
{
    cudaStreamCaptureStatus status;
    cudaUserObject_t object;
    cudaGraph_t graph;

    EXPECT(cudaSuccess, cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
    MUST(cudaUserObjectCreate(&object, nullptr, end_state, 1, cudaUserObjectNoDestructorSync));
    MUST(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
}

// warm up; capture_begin; allocate; work; an external event; capture_end; replay; reset.
static void as_torch_does_it()
{
    float *input = make(std::vector<float>(COUNT, 1));
    cudaStream_t stream = make_stream();
    cudaEvent_t done;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec;
    size_t nodes = 0;

    MUST(cudaEventCreate(&done));
    run_scale(input, input, 2, stream);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaDeviceSynchronize());
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    float *hidden = allocate_while_capturing(stream);
    run_scale(hidden, input, 3, stream);
    float *output = allocate_while_capturing(stream);
    run_scale(output, hidden, 4, stream);
    keep_a_state(stream);
    EXPECT(cudaSuccess, cudaEventRecordWithFlags(done, stream, cudaEventRecordExternal));
    MUST(cudaStreamEndCapture(stream, &graph));
    IS_TRUE(graph != nullptr);
    MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
    IS_TRUE(nodes == 3);
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    EXPECT(cudaSuccess, cudaGraphDebugDotPrint(graph, "/dev/null", cudaGraphDebugDotFlagsVerbose));
    MUST(cudaGraphDestroy(graph));
    for (int round = 1; round <= 10; round++) {
        std::vector<float> values(COUNT, (float)round);

        MUST(cudaMemcpyAsync(input, values.data(), COUNT * sizeof(float), cudaMemcpyHostToDevice,
                             stream));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaEventSynchronize(done));
        IS_TRUE(all_are(output, 12.0f * (float)round));
    }
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(states_ended == 0);
    MUST(cudaGraphExecDestroy(exec));
    for (int i = 0; i < 60000 && states_ended == 0; i++)
        usleep(1000);
    IS_TRUE(states_ended == 1);
    MUST(cudaEventDestroy(done));
    MUST(cudaFree(hidden));
    MUST(cudaFree(output));
    MUST(cudaFree(input));
    MUST(cudaStreamDestroy(stream));
}

// With cudaMallocAsync as its allocator, memory is allocated and freed by the graph itself.
static void with_the_asynchronous_allocator()
{
    float *input = make(std::vector<float>(COUNT, 1)), *scratch, *output;
    cudaStream_t stream = make_stream();
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaMallocAsync(&scratch, COUNT * sizeof(float), stream));
    run_scale(scratch, input, 5, stream);
    MUST(cudaMallocAsync(&output, COUNT * sizeof(float), stream));
    run_scale(output, scratch, 2, stream);
    MUST(cudaFreeAsync(scratch, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    for (int round = 0; round < 3; round++) {
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(all_are(output, 10));
    }
    MUST(cudaFreeAsync(output, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(cudaSuccess, cudaDeviceGraphMemTrim(0));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(input));
}

// What llama.cpp does for each token. The parameters that a captured node had are kept, one is
// replaced in place, and the node is set by them.
static void captured_parameters_are_replaced()
{
    float *memory = make(std::vector<float>(COUNT, 1));
    cudaStream_t stream = make_stream();
    cudaKernelNodeParams params = {};
    cudaGraphExecUpdateResultInfo info;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaGraph_t graph;
    size_t one = 1;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    run_scale(memory, memory, 2, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphGetNodes(graph, &node, &one));
    EXPECT(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
    IS_TRUE(params.func == (void *)scale && params.gridDim.x == COUNT / 256);
    float product = 1;
    for (float factor = 3; factor < 6; factor++) {
        params.kernelParams[2] = &factor;
        EXPECT(cudaSuccess, cudaGraphKernelNodeSetParams(node, &params));
        EXPECT(cudaSuccess, cudaGraphExecUpdate(exec, graph, &info));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        product *= factor;
        IS_TRUE(all_are(memory, product));
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(memory));
}

static void a_copy_to_the_device_stays_one()
{
    float *memory = make(std::vector<float>(COUNT, 1)), value = 2;
    cudaStream_t stream = make_stream();
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaGraph_t graph;

    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, memory, &value, sizeof(value),
                                  cudaMemcpyHostToDevice));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(cudaSuccess, cudaGraphExecMemcpyNodeSetParams1D(exec, node, memory + 1, &value,
                                                           sizeof(value), cudaMemcpyHostToDevice));
    EXPECT(cudaErrorInvalidValue,
           cudaGraphExecMemcpyNodeSetParams1D(exec, node, memory + 2, memory, sizeof(value),
                                              cudaMemcpyDeviceToDevice));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    std::vector<float> found = take(memory, 3);
    IS_TRUE(found[0] == 1 && found[1] == 2 && found[2] == 1);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(memory));
}

static void CUDART_CB add_one(void *number)
{
    ++*(unsigned *)number;
}

// A graph by hand, through the generic calls.
static void nodes_of_any_kind()
{
    float *memory = make(std::vector<float>(COUNT, 1));
    unsigned calls = 0, blocks = COUNT / 256, count = COUNT;
    float factor = 3;
    void *arguments[] = {&memory, &memory, &factor, &count};
    cudaGraphNodeParams params = {};
    cudaGraphNode_t first, second;
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    MUST(cudaGraphCreate(&graph, 0));
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = (void *)scale;
    params.kernel.gridDim = dim3(blocks);
    params.kernel.blockDim = dim3(256);
    params.kernel.kernelParams = arguments;
    MUST(cudaGraphAddNode(&first, graph, nullptr, nullptr, 0, &params));
    params = {};
    params.type = cudaGraphNodeTypeHost;
    params.host.fn = add_one;
    params.host.userData = &calls;
    MUST(cudaGraphAddNode(&second, graph, &first, nullptr, 1, &params));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, 0));
    MUST(cudaDeviceSynchronize());
    IS_TRUE(calls == 1 && all_are(memory, 3));

    params = {};
    factor = 2;
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = (void *)scale;
    params.kernel.gridDim = dim3(blocks);
    params.kernel.blockDim = dim3(256);
    params.kernel.kernelParams = arguments;
    MUST(cudaGraphExecNodeSetParams(exec, first, &params));
    MUST(cudaGraphLaunch(exec, 0));
    MUST(cudaDeviceSynchronize());
    IS_TRUE(calls == 2 && all_are(memory, 6));
    cudaKernelNodeParams told = {};
    EXPECT(cudaSuccess, cudaGraphKernelNodeGetParams(first, &told));
    IS_TRUE(told.func == (void *)scale && *(float *)told.kernelParams[2] == 3);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(memory));
}

int main()
{
    RUN(as_torch_does_it);
    RUN(with_the_asynchronous_allocator);
    RUN(captured_parameters_are_replaced);
    RUN(a_copy_to_the_device_stays_one);
    RUN(nodes_of_any_kind);
    return check_close();
}
