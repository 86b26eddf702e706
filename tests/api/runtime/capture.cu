// SPDX-License-Identifier: Apache-2.0
// Capture as deep learning frameworks use it. The program warms up, and captures on a stream of its
// own with memory that stays where it is. It replays again and again with new input in the same
// place.
#include "graph_work.cuh"

__global__ void accumulate(float *sum, const float *in, unsigned count)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        sum[i] += in[i];
}

// Not commutative, so the result tells the order.
__global__ void step(unsigned *word, unsigned value)
{
    *word = *word * 10 + value;
}

static void run_accumulate(float *sum, const float *in, cudaStream_t stream)
{
    accumulate<<<COUNT / 256, 256, 0, stream>>>(sum, in, COUNT);
    EXPECT(cudaSuccess, cudaGetLastError());
}

static void run_step(unsigned *word, unsigned value, cudaStream_t stream)
{
    step<<<1, 1, 0, stream>>>(word, value);
    EXPECT(cudaSuccess, cudaGetLastError());
}

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return exec;
}

// A network of two layers: the input's memory is filled anew before each replay.
static void replays_with_new_input()
{
    std::vector<float> zeroes(COUNT, 0);
    float *input = make(zeroes), *hidden = make(zeroes), *output = make(zeroes);
    cudaStream_t stream = make_stream();

    run_scale(hidden, input, 2, stream); // the warm-up
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    run_scale(hidden, input, 2, stream);
    run_scale(output, hidden, 3, stream);
    cudaGraphExec_t exec = end_capture(stream);

    IS_TRUE(all_are(output, 0)); // capturing does nothing
    for (int round = 1; round <= 20; round++) {
        std::vector<float> values(COUNT, (float)round);

        MUST(cudaMemcpyAsync(input, values.data(), COUNT * sizeof(float), cudaMemcpyHostToDevice,
                             stream));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(all_are(output, 6.0f * (float)round));
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(input));
    MUST(cudaFree(hidden));
    MUST(cudaFree(output));
}

// As vLLM does it: one graph for each batch size, in one pool of memory.
static void many_graphs_in_one_pool()
{
    float *pool = make(std::vector<float>(2 * COUNT, 1));
    cudaStream_t stream = make_stream();
    std::vector<cudaGraphExec_t> execs;

    for (int i = 0; i < 16; i++) {
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        run_scale(pool + COUNT, pool, (float)i, stream);
        execs.push_back(end_capture(stream));
    }
    for (int i = 15; i >= 0; i--) {
        MUST(cudaGraphLaunch(execs[i], stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(all_are(pool + COUNT, (float)i));
    }
    for (cudaGraphExec_t exec : execs)
        MUST(cudaGraphExecDestroy(exec));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(pool));
}

// Work that forks to a side stream and joins again, as overlapping layers do.
static void side_stream()
{
    std::vector<float> ones(COUNT, 1), zeroes(COUNT, 0);
    float *input = make(ones), *left = make(zeroes), *right = make(zeroes), *sum = make(zeroes);
    cudaStream_t stream = make_stream(), side = make_stream();
    cudaEvent_t fork, join;

    MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaEventRecord(fork, stream));
    MUST(cudaStreamWaitEvent(side, fork, 0));
    run_scale(left, input, 5, stream);
    run_scale(right, input, 7, side);
    MUST(cudaEventRecord(join, side));
    MUST(cudaStreamWaitEvent(stream, join, 0));
    run_accumulate(sum, left, stream);
    run_accumulate(sum, right, stream);
    cudaGraphExec_t exec = end_capture(stream);

    for (int round = 0; round < 3; round++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(all_are(sum, 36));

    // Both streams and events do ordinary work again.
    run_scale(left, input, 2, side);
    MUST(cudaEventRecord(join, side));
    MUST(cudaStreamWaitEvent(stream, join, 0));
    run_accumulate(sum, left, stream);
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(all_are(sum, 38));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaEventDestroy(fork));
    MUST(cudaEventDestroy(join));
    MUST(cudaStreamDestroy(side));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(input));
    MUST(cudaFree(left));
    MUST(cudaFree(right));
    MUST(cudaFree(sum));
}

// A capture of the same shape with other values takes the place of the first.
static void whole_graphs_are_updated()
{
    float *input = make(std::vector<float>(COUNT, 1)), *output = make(std::vector<float>(COUNT, 0));
    cudaStream_t stream = make_stream();
    cudaGraphExec_t exec = nullptr;

    for (int round = 1; round <= 5; round++) {
        cudaGraphExecUpdateResultInfo info;
        cudaGraph_t graph;

        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        MUST(cudaMemsetAsync(output, 0, COUNT * sizeof(float), stream));
        run_scale(output, input, (float)round, stream);
        MUST(cudaStreamEndCapture(stream, &graph));
        if (exec)
            EXPECT(cudaSuccess, cudaGraphExecUpdate(exec, graph, &info));
        else
            MUST(cudaGraphInstantiate(&exec, graph, 0));
        MUST(cudaGraphDestroy(graph));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(all_are(output, (float)round));
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(input));
    MUST(cudaFree(output));
}

static void CUDART_CB count_call(void *counter)
{
    ++*(unsigned *)counter;
}

// The program's own memory is read and written when the graph runs, and its function runs there.
static void host_memory_and_functions()
{
    std::vector<unsigned> up(COUNT, 0), down(COUNT, 0);
    unsigned *device = make(up), calls = 0;
    cudaStream_t stream = make_stream();

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaMemcpyAsync(device, up.data(), COUNT * sizeof(unsigned), cudaMemcpyHostToDevice,
                         stream));
    run_step(device, 7, stream);
    MUST(cudaLaunchHostFunc(stream, count_call, &calls));
    run_step(device, 8, stream);
    MUST(cudaMemcpyAsync(down.data(), device, COUNT * sizeof(unsigned), cudaMemcpyDeviceToHost,
                         stream));
    cudaGraphExec_t exec = end_capture(stream);

    for (unsigned round = 1; round <= 10; round++) {
        for (unsigned &value : up)
            value = round;
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(calls == round && down[0] == round * 100 + 78 && down[COUNT - 1] == round);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(device));
}

// Launches of one graph follow each other and what else is in their streams.
static void order_between_launches()
{
    unsigned zero = 0, *word = make(std::vector<unsigned>(1, 0));
    cudaStream_t a = make_stream(), b = make_stream();
    cudaEvent_t event;

    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    MUST(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    run_step(word, 1, a);
    run_step(word, 2, a);
    cudaGraphExec_t exec = end_capture(a);

    MUST(cudaMemcpy(word, &zero, sizeof(zero), cudaMemcpyHostToDevice));
    run_step(word, 9, a);
    MUST(cudaGraphLaunch(exec, a));
    run_step(word, 3, a);
    MUST(cudaEventRecord(event, a));
    MUST(cudaStreamWaitEvent(b, event, 0));
    MUST(cudaGraphLaunch(exec, b));
    run_step(word, 4, b);
    MUST(cudaDeviceSynchronize());
    IS_TRUE(take(word, 1)[0] == 9123124);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(a));
    MUST(cudaStreamDestroy(b));
    MUST(cudaFree(word));
}

// A launch that is captured becomes part of the new graph.
static void graphs_in_graphs()
{
    unsigned *word = make(std::vector<unsigned>(1, 0));
    cudaStream_t stream = make_stream();

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    run_step(word, 1, stream);
    run_step(word, 2, stream);
    cudaGraph_t inner;
    MUST(cudaStreamEndCapture(stream, &inner));

    cudaGraph_t outer;
    cudaGraphNode_t first, second;
    cudaGraphExec_t exec;
    MUST(cudaGraphCreate(&outer, 0));
    MUST(cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, inner));
    MUST(cudaGraphAddChildGraphNode(&second, outer, &first, 1, inner));
    MUST(cudaGraphInstantiate(&exec, outer, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(take(word, 1)[0] == 1212);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(outer));
    MUST(cudaGraphDestroy(inner));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(word));
}

// What cannot be captured spoils the capture, and the stream is well again afterwards.
static void what_cannot_be_captured()
{
    cudaStream_t stream = make_stream();
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;

    EXPECT(cudaErrorStreamCaptureUnsupported,
           cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaStreamIsCapturing(stream, &status));
    IS_TRUE(status == cudaStreamCaptureStatusActive);
    EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    MUST(cudaStreamIsCapturing(stream, &status));
    IS_TRUE(status == cudaStreamCaptureStatusInvalidated);
    EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    MUST(cudaStreamIsCapturing(stream, &status));
    IS_TRUE(status == cudaStreamCaptureStatusNone);
    (void)cudaGetLastError();
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(stream));
}

// PyTorch allocates while it captures, from a thread that says that this is well.
static void allocations_while_capturing()
{
    std::vector<float> ones(COUNT, 1);
    float *input = make(ones), *output = nullptr;
    cudaStream_t stream = make_stream();
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(cudaSuccess, cudaMalloc(&output, COUNT * sizeof(float)));
    EXPECT(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
    run_scale(output, input, 4, stream);
    cudaGraphExec_t exec = end_capture(stream);

    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(all_are(output, 4));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(input));
    MUST(cudaFree(output));
}

int main()
{
    RUN(replays_with_new_input);
    RUN(many_graphs_in_one_pool);
    RUN(side_stream);
    RUN(whole_graphs_are_updated);
    RUN(host_memory_and_functions);
    RUN(order_between_launches);
    RUN(graphs_in_graphs);
    RUN(what_cannot_be_captured);
    RUN(allocations_while_capturing);
    return check_close();
}
