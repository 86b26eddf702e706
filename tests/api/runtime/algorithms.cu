// SPDX-License-Identifier: Apache-2.0
// What people build on: CUB, Thrust, and the random numbers of cuRAND's device header. The arguments
// are the rounds of repeated_algorithms.cuh, and which of its algorithms to run.

// Without this, Thrust compiles each algorithm for more than 2^31 items as well, a quarter of nvcc's time.
#define THRUST_FORCE_32_BIT_OFFSET_TYPE

#include "check.cuh"
#include "repeated_algorithms.cuh"

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <curand_kernel.h>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <numeric>

#define COUNT 5000

static std::vector<int> numbers(int count)
{
    std::vector<int> values(count);
    uint32_t state = 77;

    for (int &value : values)
        value = (int)next_random(state) - (1 << 23);
    return values;
}

// A call of CUB is made twice: it says how much memory it needs, then it works.
template <typename F> static void with_memory(F call)
{
    size_t size = 0;
    void *memory;

    MUST(call(nullptr, size));
    MUST(cudaMalloc(&memory, size));
    MUST(call(memory, size));
    MUST(cudaFree(memory));
}

static void device_algorithms()
{
    std::vector<int> values = numbers(COUNT), sums(COUNT);
    int *in = make(values), *out = make(std::vector<int>(COUNT)), *sum = make(std::vector<int>(1));

    with_memory([&](void *memory, size_t &size) {
        return cub::DeviceReduce::Sum(memory, size, in, sum, COUNT);
    });
    IS_TRUE(take(sum, 1)[0] == std::accumulate(values.begin(), values.end(), 0));
    with_memory([&](void *memory, size_t &size) {
        return cub::DeviceScan::InclusiveSum(memory, size, in, out, COUNT);
    });
    std::partial_sum(values.begin(), values.end(), sums.begin());
    IS_TRUE(take(out, COUNT) == sums);
    with_memory([&](void *memory, size_t &size) {
        return cub::DeviceRadixSort::SortKeys(memory, size, in, out, COUNT);
    });
    std::sort(values.begin(), values.end());
    IS_TRUE(take(out, COUNT) == values);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    MUST(cudaFree(sum));
}

__global__ void sort_block(const int *in, int *out)
{
    using Sort = cub::BlockRadixSort<int, 64, 4>;
    using Scan = cub::BlockScan<int, 64>;
    __shared__ typename Sort::TempStorage sort_memory;
    __shared__ typename Scan::TempStorage scan_memory;
    int items[4], before, all;

    for (int i = 0; i < 4; i++)
        items[i] = in[threadIdx.x * 4 + i];
    Sort(sort_memory).Sort(items);
    Scan(scan_memory).ExclusiveSum(items[0] & 3, before, all);
    for (int i = 0; i < 4; i++)
        out[threadIdx.x * 4 + i] = items[i];
    if (threadIdx.x == 63)
        out[256] = before + (items[0] & 3) - all;
}

static void block_algorithms()
{
    std::vector<int> values = numbers(256);
    int *in = make(values), *out = make(std::vector<int>(257, -1));

    sort_block<<<1, 64>>>(in, out);
    MUST(cudaGetLastError());
    std::sort(values.begin(), values.end());
    values.push_back(0);
    IS_TRUE(take(out, 257) == values);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
}

struct squared {
    __host__ __device__ double operator()(int x) const
    {
        return x % 4096 * (x % 4096);
    }
};

static void vectors()
{
    std::vector<int> values = numbers(COUNT);
    thrust::device_vector<int> on_device(values.begin(), values.end());

    thrust::stable_sort(on_device.begin(), on_device.end(), thrust::greater<int>());
    std::sort(values.rbegin(), values.rend());
    std::vector<int> got(COUNT);
    thrust::copy(on_device.begin(), on_device.end(), got.begin());
    IS_TRUE(got == values);
    double expected = 0;
    for (int value : values)
        expected += squared()(value);
    IS_TRUE(thrust::transform_reduce(on_device.begin(), on_device.end(), squared(), 0.0,
                                     thrust::plus<double>()) == expected);
}

// ---- Random numbers ----

template <typename STATE> __global__ void draw(unsigned *bits, float *normal, float *uniform)
{
    STATE state;
    int i = threadIdx.x + blockIdx.x * blockDim.x;

    curand_init(1234, i, 0, &state);
    bits[i] = curand(&state);
    normal[i] = curand_normal(&state);
    uniform[i] = curand_uniform(&state) + (float)curand_uniform_double(&state) +
                 (float)curand_poisson(&state, 2.0);
}

// Philox, written once more: the first word of a subsequence.
static unsigned philox(unsigned key0, unsigned sequence)
{
    uint32_t counter[4] = {0, 0, sequence, 0}, key[2] = {key0, 0};

    for (int round = 0; round < 10; round++) {
        uint64_t a = 0xd2511f53ull * counter[0], b = 0xcd9e8d57ull * counter[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ counter[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ counter[3] ^ key[1], (uint32_t)a};
        memcpy(counter, next, sizeof(counter));
        key[0] += 0x9e3779b9;
        key[1] += 0xbb67ae85;
    }
    return counter[0];
}

template <typename STATE> static std::vector<unsigned> draws()
{
    const int count = 1024;
    unsigned *bits = make(std::vector<unsigned>(count));
    float *normal = make(std::vector<float>(count)), *uniform = make(std::vector<float>(count));
    double mean = 0, square = 0, flat = 0;

    draw<STATE><<<4, count / 4>>>(bits, normal, uniform);
    MUST(cudaGetLastError());
    std::vector<unsigned> drawn = take(bits, count);
    for (float one : take(normal, count)) {
        mean += one / count;
        square += one * one / count;
    }
    for (float one : take(uniform, count))
        flat += one / count;
    IS_TRUE(mean > -0.15 && mean < 0.15 && square > 0.8 && square < 1.2);
    IS_TRUE(flat > 2.7 && flat < 3.3);
    printf("%016llx\n",
           (unsigned long long)checksum(drawn.data(), drawn.size() * sizeof(drawn[0])));
    MUST(cudaFree(bits));
    MUST(cudaFree(normal));
    MUST(cudaFree(uniform));
    return drawn;
}

static void random_numbers()
{
    bool same = true;

    draws<curandStateXORWOW_t>();
    draws<curandStateMRG32k3a_t>();
    std::vector<unsigned> drawn = draws<curandStatePhilox4_32_10_t>();
    for (unsigned i = 0; i < drawn.size(); i++)
        same = same && drawn[i] == philox(1234, i);
    IS_TRUE(same);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;

    RUN(device_algorithms);
    RUN(block_algorithms);
    RUN(vectors);
    RUN(random_numbers);
    IS_TRUE(repeated::repeat_algorithms(rounds, argc > 2 ? argv[2] : NULL));
    return check_close();
}
