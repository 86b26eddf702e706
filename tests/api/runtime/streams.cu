// SPDX-License-Identifier: Apache-2.0
// What waits for what, told by the data. Built once more with --default-stream per-thread, where
// the default stream of the source is each thread's own.
#include "check.cuh"

#include <thread>

// Not commutative, so the result tells the order.
__global__ void step(unsigned *word, unsigned factor, unsigned value, unsigned turns)
{
    unsigned x = value;

    for (unsigned i = 0; i < turns; i++)
        x = x * 1664525 + 1013904223;
    *word = *word * factor + (x == 0 && turns != 0 ? value + 1 : value);
}

static unsigned *word;

static void queue(cudaStream_t stream, unsigned value, unsigned turns)
{
    step<<<1, 1, 0, stream>>>(word, 10, value, turns);
    EXPECT(cudaSuccess, cudaGetLastError());
}

static void start()
{
    unsigned one = 1;

    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(word, &one, sizeof(one), cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
}

static unsigned result()
{
    MUST(cudaDeviceSynchronize());
    return take(word, 1)[0];
}

static void one_stream()
{
    cudaStream_t a;

    MUST(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    start();
    for (unsigned i = 2; i <= 6; i++)
        queue(a, i, i % 2 ? SLOW : 0);
    IS_TRUE(result() == 123456);
    EXPECT(cudaSuccess, cudaStreamQuery(a));
    MUST(cudaStreamDestroy(a));
}

static void default_and_blocking()
{
    cudaStream_t a, b;

    MUST(cudaStreamCreate(&a));
    MUST(cudaStreamCreateWithPriority(&b, cudaStreamDefault, 0));
    start();
    queue(a, 2, SLOW);
    queue(cudaStreamLegacy, 3, SLOW);
    queue(b, 4, SLOW);
    queue(cudaStreamLegacy, 5, 0);
    queue(cudaStreamPerThread, 6, 0);
    IS_TRUE(result() == 123456);
    MUST(cudaStreamDestroy(a));
    MUST(cudaStreamDestroy(b));
}

static void events_across()
{
    cudaStream_t streams[3];
    cudaEvent_t events[3];

    for (int i = 0; i < 3; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    }
    start();
    for (unsigned i = 0; i < 8; i++) {
        if (i > 0)
            EXPECT(cudaSuccess, cudaStreamWaitEvent(streams[i % 3], events[(i - 1) % 3], 0));
        queue(streams[i % 3], (i + 2) % 10, SLOW / 4);
        EXPECT(cudaSuccess, cudaEventRecord(events[i % 3], streams[i % 3]));
    }
    IS_TRUE(result() == 123456789);
    for (int i = 0; i < 3; i++) {
        MUST(cudaEventDestroy(events[i]));
        MUST(cudaStreamDestroy(streams[i]));
    }
}

static void copies_and_kernels()
{
    enum { STREAMS = 4, N = 10000 };
    cudaStream_t streams[STREAMS];
    unsigned *pinned, *device;
    bool right = true;

    MUST(cudaMallocHost(&pinned, STREAMS * sizeof(*pinned)));
    MUST(cudaMalloc(&device, STREAMS * sizeof(*device)));
    for (unsigned i = 0; i < STREAMS; i++) {
        MUST(cudaStreamCreate(&streams[i]));
        pinned[i] = i + 1;
    }
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < STREAMS; i++) {
            MUST(cudaMemcpyAsync(device + i, pinned + i, sizeof(*pinned), cudaMemcpyHostToDevice,
                                 streams[i]));
            step<<<1, 1, 0, streams[i]>>>(device + i, 3, i, 500);
            MUST(cudaMemcpyAsync(pinned + i, device + i, sizeof(*pinned), cudaMemcpyDeviceToHost,
                                 streams[i]));
        }
    }
    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < STREAMS; i++) {
        unsigned expected = i + 1;

        for (unsigned round = 0; round < 5; round++)
            expected = expected * 3 + i;
        right &= pinned[i] == expected;
        MUST(cudaStreamDestroy(streams[i]));
    }
    IS_TRUE(right);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
}

static void of_a_thread(unsigned *mine, bool *right)
{
    for (unsigned i = 0; i < 20; i++)
        step<<<1, 1>>>(mine, 3, i, SLOW / 20);
    *right = cudaStreamSynchronize(0) == cudaSuccess;
}

// With the legacy stream the threads take turns, with per-thread streams they need not; either
// way each thread's own work is in order.
static void default_streams_of_threads()
{
    enum { THREADS = 8 };
    std::vector<std::thread> threads;
    unsigned *words = make(std::vector<unsigned>(THREADS, 1)), expected = 1;
    bool right[THREADS];

    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 20; i++)
        expected = expected * 3 + i;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(of_a_thread, words + i, &right[i]);
    for (std::thread &thread : threads)
        thread.join();
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < THREADS; i++)
        IS_TRUE(right[i]);
    IS_TRUE(take(words, THREADS) == std::vector<unsigned>(THREADS, expected));
    MUST(cudaFree(words));
}

static void flags_and_priorities()
{
    cudaStream_t high;
    int least, greatest, priority = 99;
    unsigned flags = 99;

    EXPECT(cudaSuccess, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    IS_TRUE(least == 0 && greatest <= 0);
    EXPECT(cudaSuccess, cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    EXPECT(cudaSuccess, cudaStreamGetPriority(high, &priority));
    IS_TRUE(priority == greatest);
    EXPECT(cudaSuccess, cudaStreamGetFlags(high, &flags));
    IS_TRUE(flags == cudaStreamNonBlocking);
    MUST(cudaStreamDestroy(high));
}

int main()
{
    word = make(std::vector<unsigned>(1, 1));
    RUN(one_stream);
    RUN(default_and_blocking);
    RUN(events_across);
    RUN(copies_and_kernels);
    RUN(default_streams_of_threads);
    RUN(flags_and_priorities);
    MUST(cudaFree(word));
    return check_close();
}
