// SPDX-License-Identifier: Apache-2.0
// A program with a large fat binary: two hundred kernels, each launched once. Says how long that
// took from the first launch on, which is mostly the time of loading them.
#include <chrono>
#include <cstdio>
#include <utility>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "bench modules: %s: %s\n", #call, cudaGetErrorString(error_));         \
            return 2;                                                                              \
        }                                                                                          \
    } while (0)

constexpr int KERNELS = 200;

// Each different, and long enough to be worth loading.
template <int N> __global__ void kernel(unsigned *out)
{
    unsigned x = N + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 16 + N % 32; i++)
        x = x * (2u * N + 3u) + (x >> (i % 7 + 1)) + i;
    if (x != 0x12345678u)
        atomicAdd(&out[N], 1u);
}

template <int... N> void launch_all(unsigned *out, std::integer_sequence<int, N...>)
{
    (kernel<N><<<1, 1>>>(out), ...);
}

int main()
{
    unsigned *out, host[KERNELS];
    CHECK(cudaFree(nullptr));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMemset(out, 0, sizeof host));
    CHECK(cudaDeviceSynchronize());
    auto start = std::chrono::steady_clock::now();
    launch_all(out, std::make_integer_sequence<int, KERNELS>());
    CHECK(cudaDeviceSynchronize());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    double ms = took.count() * 1e3;
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    bool correct = true;
    for (unsigned count : host)
        correct &= count == 1;
    printf("{\"load_ms\": %.3f, \"correct\": %s}\n", ms, correct ? "true" : "false");
    return correct ? 0 : 1;
}
