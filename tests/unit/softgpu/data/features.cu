// SPDX-License-Identifier: Apache-2.0
// One kernel a feature of the execution model: see test_features.c. Compiled as usual and with -G.
#include <cassert>
#include <cstdio>

struct record {
    float scale;
    int offsets[3];
    double bias;
};

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter = 7;
__device__ int *counter_pointer = &counter;

typedef int (*operation)(int);
__device__ int twice(int x)
{
    return 2 * x;
}
__device__ int next(int x)
{
    return x + 1;
}
__device__ operation operations[2] = {twice, next};

__device__ __noinline__ float apply(float x, record r)
{
    return x * r.scale + r.offsets[1] + (float)r.bias;
}

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" {

__global__ void structs(float *out, record r)
{
    int i = threadIdx.x;
    out[i] = apply(i, r) + coefficients[i & 3];
}

__global__ void pointers(int *out)
{
    out[threadIdx.x] = operations[threadIdx.x & 1](threadIdx.x) + *counter_pointer;
}

__global__ void recursion(int *out)
{
    out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

__global__ void local_array(int *out, int n)
{
    int values[16];
    for (int i = 0; i < 16; i++)
        values[i] = i * threadIdx.x;
    out[threadIdx.x] = values[(n + threadIdx.x) & 15];
}

__global__ void votes(unsigned *out)
{
    int i = threadIdx.x;
    unsigned even = __ballot_sync(0xffffffff, i % 2 == 0);
    unsigned alike = __match_any_sync(0xffffffff, i / 5);
    unsigned sum = __reduce_add_sync(0xffffffff, (unsigned)i);
    int rotated = __shfl_sync(0xffffffff, i, (i + 1) & 31, 8);
    int up = __shfl_up_sync(0xffffffff, i, 3);
    int across = __shfl_xor_sync(0xffffffff, i, 5, 16);
    unsigned some = 0;
    if (i < 13)
        some = __ballot_sync(0x1fff, i % 3 == 0);
    out[8 * i] = even;
    out[8 * i + 1] = alike;
    out[8 * i + 2] = sum;
    out[8 * i + 3] = rotated;
    out[8 * i + 4] = up;
    out[8 * i + 5] = across;
    out[8 * i + 6] = some;
    out[8 * i + 7] = __all_sync(0xffffffff, i >= 0) + 2 * __any_sync(0xffffffff, i == 31);
}

__global__ void atomics(unsigned *u, int *s, unsigned long long *l, float *f, double *d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&u[0], 1u);
    atomicMax(&u[1], (unsigned)i);
    atomicInc(&u[2], 9u);
    atomicXor(&u[3], (unsigned)i);
    atomicMin(&s[0], -i);
    atomicAdd(l, 1ull << 33);
    atomicAdd(f, 1.0f);
    atomicAdd(d, 0.5);
    unsigned seen = u[4], expected;
    do {
        expected = seen;
        seen = atomicCAS(&u[4], expected, expected + 3);
    } while (seen != expected);
}

/* A lock that lanes of one warp, and warps of many blocks, fight for. */
__global__ void lock(int *word, volatile int *total)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(word, 0, 1) == 0) {
            *total = *total + 1;
            __threadfence();
            atomicExch(word, 0);
            done = true;
        }
    }
}

/* Every block waits for all others. */
__global__ void rendezvous(volatile int *arrived, int *out)
{
    if (threadIdx.x == 0) {
        atomicAdd((int *)arrived, 1);
        while (*arrived < gridDim.x)
            ;
    }
    __syncthreads();
    out[blockIdx.x] = *arrived;
}

__global__ void barriers(int *out)
{
    int i = threadIdx.x;
    out[2 * i] = __syncthreads_count(i % 3 == 0);
    out[2 * i + 1] = __syncthreads_and(i < 1000) + 2 * __syncthreads_or(i == 77);
}

__global__ void print(int n)
{
    if (threadIdx.x < 2)
        printf("thread %d of %d: %5.2f %s %c %llx %%|%-4d|\n", threadIdx.x, n, 1.5f * threadIdx.x,
               "text", 'a' + threadIdx.x, 0x123456789abcull, n);
}

__global__ void check(int n)
{
    assert(n > 5);
}

__global__ void heap(int **out)
{
    int *memory = (int *)malloc(16 * sizeof(int));
    for (int i = 0; i < 16; i++)
        memory[i] = i + threadIdx.x;
    out[threadIdx.x] = memory;
    if (threadIdx.x & 1)
        free(memory);
}

__global__ void store_at(int *address)
{
    *address = 1;
}

__global__ void shared_beyond(int index)
{
    __shared__ volatile int values[8];
    values[index] = 1;
}

__global__ void forever(volatile int *word)
{
    while (*word == 0)
        ;
}

__global__ void choose(int *out, int n)
{
    int x = threadIdx.x % 9, r;
    switch (x) {
    case 0: r = n * 3; break;
    case 1: r = n ^ 7; break;
    case 2: r = n << 3; break;
    case 3: r = n - 100; break;
    case 4: r = n / 3; break;
    case 5: r = n % 5; break;
    case 6: r = ~n; break;
    case 7: r = n * n; break;
    default: r = 0;
    }
    out[threadIdx.x] = r;
}
}
