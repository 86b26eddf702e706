// SPDX-License-Identifier: Apache-2.0
// Sums, minima and counts by shuffles, by shared memory, by atomics and by votes.
#include "check.cuh"

#include <algorithm>
#include <numeric>

__global__ void sum_by_shuffle(const int *data, int n, unsigned long long *sum)
{
    long long mine = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += data[i];
    for (int distance = 16; distance > 0; distance /= 2)
        mine += __shfl_xor_sync(0xffffffff, mine, distance);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, (unsigned long long)mine);
}

template <int BLOCK> __global__ void sum_by_shared(const int *data, int n, unsigned long long *sum)
{
    __shared__ long long part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;

    part[threadIdx.x] = i < n ? data[i] : 0;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(sum, (unsigned long long)part[0]);
}

__global__ void sum_by_atomics(const int *data, int n, unsigned long long *sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        atomicAdd(sum, (unsigned long long)(long long)data[i]);
}

__global__ void extremes(const int *data, int n, int *least, int *greatest, int *last_block)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    atomicMin(least, data[i]);
    atomicMax(greatest, data[i]);
    if (threadIdx.x == 0)
        atomicOr(last_block, 1 << (blockIdx.x % 31));
}

__global__ void count_by_vote(const int *data, int n, unsigned *odd, unsigned *warps_with_zero)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? data[i] : 2;
    unsigned votes = __ballot_sync(0xffffffff, value & 1);
    bool zero = __any_sync(0xffffffff, value == 0);

    if (threadIdx.x % 32 != 0)
        return;
    atomicAdd(odd, __popc(votes));
    if (zero)
        atomicAdd(warps_with_zero, 1);
}

// Sums floats as the fixed-point numbers they are close to, with a loop of compare and swap.
__global__ void sum_by_cas(const float *data, int n, unsigned *sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned seen, add;

    if (i >= n)
        return;
    add = (unsigned)(data[i] * 1024.0f);
    do {
        seen = *(volatile unsigned *)sum;
    } while (atomicCAS(sum, seen, seen + add) != seen);
}

enum { N = 20000 };
static std::vector<int> data(N);
static int *device_data;

static void check_sum(unsigned long long *sum)
{
    long long expected = std::accumulate(data.begin(), data.end(), 0ll);

    EXPECT(cudaSuccess, cudaGetLastError());
    IS_TRUE((long long)take(sum, 1)[0] == expected);
    MUST(cudaFree(sum));
}

static unsigned long long *make_sum()
{
    return make(std::vector<unsigned long long>(1, 0));
}

static void shuffles()
{
    unsigned long long *sum = make_sum();

    sum_by_shuffle<<<7, 96>>>(device_data, N, sum);
    check_sum(sum);
}

static void shared_memory()
{
    unsigned long long *sum = make_sum();

    sum_by_shared<128><<<(N + 127) / 128, 128>>>(device_data, N, sum);
    check_sum(sum);
}

static void atomics()
{
    unsigned long long *sum = make_sum();

    sum_by_atomics<<<(N + 255) / 256, 256>>>(device_data, N, sum);
    check_sum(sum);
}

static void least_and_greatest()
{
    int *words = make(std::vector<int>{INT32_MAX, INT32_MIN, 0});

    extremes<<<(N + 255) / 256, 256>>>(device_data, N, words, words + 1, words + 2);
    std::vector<int> found = take(words, 3);
    IS_TRUE(found[0] == *std::min_element(data.begin(), data.end()));
    IS_TRUE(found[1] == *std::max_element(data.begin(), data.end()));
    IS_TRUE(found[2] == 0x7fffffff);
    MUST(cudaFree(words));
}

static void votes()
{
    unsigned *words = make(std::vector<unsigned>{0, 0});
    unsigned odd = 0, warps = 0;

    for (int first = 0; first < N; first += 32) {
        bool zero = false;

        for (int i = first; i < std::min<int>(first + 32, N); i++) {
            odd += data[i] & 1;
            zero |= data[i] == 0;
        }
        warps += zero;
    }
    count_by_vote<<<(N + 127) / 128, 128>>>(device_data, N, words, words + 1);
    std::vector<unsigned> found = take(words, 2);
    IS_TRUE(found[0] == odd);
    IS_TRUE(found[1] == warps && warps > 0);
    MUST(cudaFree(words));
}

static void compare_and_swap()
{
    std::vector<float> floats(500);
    unsigned expected = 0, *sum = make(std::vector<unsigned>{0});

    for (int i = 0; i < 500; i++) {
        floats[i] = i * 0.25f;
        expected += (unsigned)(floats[i] * 1024.0f);
    }
    float *device_floats = make(floats);
    sum_by_cas<<<4, 128>>>(device_floats, 500, sum);
    IS_TRUE(take(sum, 1)[0] == expected);
    MUST(cudaFree(sum));
    MUST(cudaFree(device_floats));
}

int main()
{
    uint32_t seed = 1;

    for (int &value : data)
        value = (int)(next_random(seed) % 2001) - 1000;
    device_data = make(data);
    RUN(shuffles);
    RUN(shared_memory);
    RUN(atomics);
    RUN(least_and_greatest);
    RUN(votes);
    RUN(compare_and_swap);
    MUST(cudaFree(device_data));
    return check_close();
}
