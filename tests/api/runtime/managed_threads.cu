// SPDX-License-Identifier: Apache-2.0
// Threads with streams of their own use managed variables side by side, down to neighboring bytes.
// What one of them or its kernel writes is not undone by what is done for another. Where host and
// device have to take turns with managed memory, so do the threads.
#include "check.cuh"

#include <atomic>
#include <mutex>
#include <thread>

constexpr unsigned threads = 4, rounds = 80, cells_each = 500;

// Those of a thread lie apart, between those of the others.
__managed__ unsigned cells[threads * cells_each];
__managed__ unsigned char marks[threads * 3];
__managed__ int launches;

__global__ void step(unsigned thread, unsigned round)
{
    unsigned i = threadIdx.x;

    if (i < cells_each)
        cells[i * threads + thread] = cells[i * threads + thread] * 3 + i + round;
    if (i == 0) {
        marks[thread * 3] += 1;
        marks[thread * 3 + 2] ^= 0x55;
        atomicAdd(&launches, 1);
    }
}

__global__ void take_time(unsigned turns, unsigned *result)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < turns; i++)
        sum += i ^ (sum >> 3);
    *result = sum;
}

struct Expected {
    unsigned cells[cells_each];
    unsigned char counted, written, flipped;
};

static void write_some(unsigned thread, unsigned round, Expected &expected)
{
    for (unsigned i = round % 5; i < cells_each; i += 5)
        cells[i * threads + thread] = expected.cells[i] += 17 * round;
    marks[thread * 3 + 1] = expected.written = (unsigned char)(round * 7);
}

static void expect_step(unsigned round, Expected &expected)
{
    for (unsigned i = 0; i < cells_each; i++)
        expected.cells[i] = expected.cells[i] * 3 + i + round;
    expected.counted++;
    expected.flipped ^= 0x55;
}

static bool is_as(unsigned thread, const Expected &expected)
{
    for (unsigned i = 0; i < cells_each; i++)
        if (cells[i * threads + thread] != expected.cells[i])
            return false;
    return marks[thread * 3] == expected.counted && marks[thread * 3 + 1] == expected.written &&
           marks[thread * 3 + 2] == expected.flipped;
}

static cudaError_t wait_somehow(unsigned round, cudaStream_t stream, cudaEvent_t event)
{
    cudaError_t result = cudaErrorNotReady;

    switch (round % 4) {
    case 0:
        return cudaStreamSynchronize(stream);
    case 1:
        MUST(cudaEventRecord(event, stream));
        return cudaEventSynchronize(event);
    case 2:
        while (result == cudaErrorNotReady)
            result = cudaStreamQuery(stream);
        return result;
    default:
        return cudaDeviceSynchronize();
    }
}

static std::atomic<unsigned> wrong;
static int concurrent;
static std::mutex turn;

static void work(unsigned thread)
{
    Expected expected = {};
    cudaStream_t stream;
    cudaEvent_t event;
    unsigned *result;

    MUST(cudaStreamCreateWithFlags(&stream, thread % 2 ? cudaStreamNonBlocking : 0));
    MUST(cudaEventCreate(&event));
    MUST(cudaMalloc(&result, sizeof(*result)));
    for (unsigned round = 0; round < rounds; round++) {
        std::unique_lock<std::mutex> held(turn, std::defer_lock);

        if (!concurrent)
            held.lock();
        write_some(thread, round, expected);
        if (round % 4 == 0)
            take_time<<<1, 1, 0, stream>>>(300, result);
        step<<<1, 512, 0, stream>>>(thread, round);
        expect_step(round, expected);
        MUST(wait_somehow(round, stream, event));
        wrong += !is_as(thread, expected);
    }
    MUST(cudaFree(result));
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(stream));
}

static void side_by_side()
{
    std::vector<std::thread> workers;

    launches = 0;
    for (unsigned i = 0; i < threads; i++)
        workers.emplace_back(work, i);
    for (std::thread &worker : workers)
        worker.join();
    IS_TRUE(wrong == 0);
    IS_TRUE(launches == (int)(threads * rounds));
}

int main()
{
    MUST(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    RUN(side_by_side);
    return check_close();
}
