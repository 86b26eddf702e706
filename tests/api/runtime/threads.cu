// SPDX-License-Identifier: Apache-2.0
// Eight host threads, each with its own stream and its own memory, on one device.
#include "check.cuh"

#include <thread>

__global__ void scale(float *data, int n, float factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        data[i] *= factor;
}

enum { THREADS = 8, N = 1000, ROUNDS = 20 };

static void work(int number, bool *right)
{
    cudaStream_t stream;

    *right = true;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < ROUNDS; round++) {
        std::vector<float> values(N, (float)(number + 1));
        float *data = make(values);

        /* A copy from pageable memory may still be under way when the call returns, and a
         * non-blocking stream does not wait for it. */
        MUST(cudaStreamSynchronize(cudaStreamLegacy));
        for (int i = 0; i < 5; i++)
            scale<<<4, 256, 0, stream>>>(data, N, 2.0f);
        MUST(cudaStreamSynchronize(stream));
        *right &= take(data, N) == std::vector<float>(N, (number + 1) * 32.0f);
        MUST(cudaFree(data));
    }
    MUST(cudaStreamDestroy(stream));
}

static void eight_threads()
{
    std::vector<std::thread> threads;
    bool right[THREADS];

    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work, i, &right[i]);
    for (std::thread &thread : threads)
        thread.join();
    for (int i = 0; i < THREADS; i++)
        IS_TRUE(right[i]);
}

int main()
{
    RUN(eight_threads);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    return check_close();
}
