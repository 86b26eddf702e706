// SPDX-License-Identifier: Apache-2.0
// Histograms: with atomics in global memory, and with a private copy in shared memory.
#include "check.cuh"

#define BINS 64

__global__ void in_global(const unsigned char *data, int n, unsigned *bins)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i] % BINS], 1u);
}

__global__ void in_shared(const unsigned char *data, int n, unsigned *bins)
{
    __shared__ unsigned mine[BINS];

    if (threadIdx.x < BINS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i] % BINS], 1u);
    __syncthreads();
    if (threadIdx.x < BINS)
        atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

enum { N = 50000 };
static std::vector<unsigned char> data(N);
static std::vector<unsigned> expected(BINS);

static void check(void (*kernel)(const unsigned char *, int, unsigned *))
{
    unsigned char *device_data = make(data);
    unsigned *bins;

    MUST(cudaMalloc(&bins, BINS * sizeof(unsigned)));
    MUST(cudaMemset(bins, 0, BINS * sizeof(unsigned)));
    kernel<<<8, 128>>>(device_data, N, bins);
    EXPECT(cudaSuccess, cudaGetLastError());
    IS_TRUE(take(bins, BINS) == expected);
    MUST(cudaFree(device_data));
    MUST(cudaFree(bins));
}

static void global_memory()
{
    check(in_global);
}

static void shared_memory()
{
    check(in_shared);
}

int main()
{
    uint32_t seed = 1;

    for (unsigned char &value : data) {
        value = (unsigned char)(next_random(seed) & next_random(seed));
        expected[value % BINS]++;
    }
    RUN(global_memory);
    RUN(shared_memory);
    printf("%016llx\n",
           (unsigned long long)checksum(expected.data(), BINS * sizeof(unsigned)));
    return check_close();
}
