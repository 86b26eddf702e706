// SPDX-License-Identifier: Apache-2.0
// Launches through the runtime: large parameters, templates, dynamic shared memory, occupancy,
// attributes, cudaLaunchKernelEx and functions of the host.
#include "check.cuh"

struct big {
    int words[1020];
};

__global__ void sum_big(struct big big, long long *out, int factor)
{
    long long sum = 0;

    for (int i = 0; i < 1020; i++)
        sum += big.words[i];
    *out = sum * factor;
}

template <typename T, int N> __global__ void templated(T *out, T start)
{
    T values[N];

    for (int i = 0; i < N; i++)
        values[i] = start + (T)i;
    for (int i = 0; i < N; i++)
        out[i] = values[(i * 7 + threadIdx.x) % N];
}

extern __shared__ int dynamic[];

__global__ void rotate(int *data, int by)
{
    dynamic[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = dynamic[(threadIdx.x + by) % blockDim.x];
}

__device__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recurse(int *out)
{
    out[threadIdx.x] = fibonacci(threadIdx.x);
}

static void large_parameters()
{
    struct big big;
    long long expected = 0, *out = make(std::vector<long long>(1));

    for (int i = 0; i < 1020; i++) {
        big.words[i] = i * i - 1000;
        expected += big.words[i];
    }
    sum_big<<<1, 1>>>(big, out, -3);
    EXPECT(cudaSuccess, cudaGetLastError());
    IS_TRUE(take(out, 1)[0] == expected * -3);
    MUST(cudaFree(out));
}

static void templates()
{
    double *out = make(std::vector<double>(10));
    std::vector<double> expected;

    for (int i = 0; i < 10; i++)
        expected.push_back(0.5 + i * 7 % 10);
    templated<double, 10><<<1, 1>>>(out, 0.5);
    IS_TRUE(take(out, 10) == expected);
    MUST(cudaFree(out));
}

static void dynamic_shared_memory()
{
    std::vector<int> data(256), expected(256);
    int *device;

    for (int i = 0; i < 256; i++) {
        data[i] = i;
        expected[i] = (i + 50) % 256;
    }
    device = make(data);
    EXPECT(cudaSuccess,
           cudaFuncSetAttribute(rotate, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    rotate<<<1, 256, 60000>>>(device, 50);
    EXPECT(cudaSuccess, cudaGetLastError());
    IS_TRUE(take(device, 256) == expected);
    MUST(cudaFree(device));
}

static void recursion()
{
    int *out = make(std::vector<int>(11));

    recurse<<<1, 11>>>(out);
    EXPECT(cudaSuccess, cudaGetLastError());
    IS_TRUE(take(out, 11) == std::vector<int>({0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55}));
    MUST(cudaFree(out));
}

static void attributes_and_occupancy()
{
    cudaFuncAttributes attributes;
    int blocks = 0, grid = 0, block = 0;

    EXPECT(cudaSuccess, cudaFuncGetAttributes(&attributes, sum_big));
    IS_TRUE(attributes.maxThreadsPerBlock >= 32 && attributes.numRegs > 0);
    IS_TRUE(attributes.sharedSizeBytes == 0);
    EXPECT(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rotate, 128, 1024));
    IS_TRUE(blocks >= 1);
    EXPECT(cudaSuccess, cudaOccupancyMaxPotentialBlockSize(&grid, &block, rotate));
    IS_TRUE(grid >= 1 && block >= 32 && block % 32 == 0);
}

static void launch_ex()
{
    cudaLaunchConfig_t config = {};
    int *data = make(std::vector<int>({1, 2, 3, 4}));

    config.gridDim = 1;
    config.blockDim = 4;
    config.dynamicSmemBytes = 16;
    EXPECT(cudaSuccess, cudaLaunchKernelEx(&config, rotate, data, 1));
    IS_TRUE(take(data, 4) == std::vector<int>({2, 3, 4, 1}));
    MUST(cudaFree(data));
}

static void note(void *word)
{
    ++*(int *)word;
}

static void functions_of_the_host()
{
    cudaStream_t stream;
    int calls = 0;

    MUST(cudaStreamCreate(&stream));
    for (int i = 0; i < 10; i++)
        EXPECT(cudaSuccess, cudaLaunchHostFunc(stream, note, &calls));
    EXPECT(cudaSuccess, cudaStreamSynchronize(stream));
    IS_TRUE(calls == 10);
    MUST(cudaStreamDestroy(stream));
}

int main()
{
    RUN(large_parameters);
    RUN(templates);
    RUN(dynamic_shared_memory);
    RUN(recursion);
    RUN(attributes_and_occupancy);
    RUN(launch_ex);
    RUN(functions_of_the_host);
    return check_close();
}
