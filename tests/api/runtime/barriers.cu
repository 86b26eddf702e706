// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory: cuda::barrier, cuda::pipeline, and what they are made of.
#include "check.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_awbarrier_primitives.h>

#include <numeric>

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

#define THREADS 96

static std::vector<int> numbers(int count)
{
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

// ---- Phases ----

#pragma nv_diag_suppress static_var_with_dynamic_init

// Each round every thread reads what another wrote in the round before.
__global__ void pass_round(int *out, int rounds)
{
    __shared__ block_barrier barrier;
    __shared__ int value[2][THREADS];
    int i = threadIdx.x;

    if (i == 0)
        init(&barrier, blockDim.x);
    value[0][i] = i;
    __syncthreads();
    for (int round = 0; round < rounds; round++) {
        value[(round + 1) & 1][i] = value[round & 1][(i + 1) % THREADS] + 1;
        block_barrier::arrival_token token = barrier.arrive();
        barrier.wait(std::move(token));
    }
    out[i] = value[rounds & 1][i];
}

static void phases()
{
    int *out = make(std::vector<int>(THREADS));
    bool right = true;

    pass_round<<<1, THREADS>>>(out, 11);
    std::vector<int> found = take(out, THREADS);
    for (int i = 0; i < THREADS; i++)
        right &= found[i] == (i + 11) % THREADS + 11;
    IS_TRUE(right);
    MUST(cudaFree(out));
}

// Threads leave one after the other; those that stay expect fewer.
__global__ void leave(int *count)
{
    __shared__ block_barrier barrier;

    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 8; round++) {
        atomicAdd(&count[round], 1);
        if (threadIdx.x % 8 == round) {
            barrier.arrive_and_drop();
            return;
        }
        barrier.arrive_and_wait();
    }
}

static void dropping_out()
{
    int *count = make(std::vector<int>(8));
    bool right = true;

    leave<<<1, THREADS>>>(count);
    std::vector<int> found = take(count, 8);
    for (int round = 0; round < 8; round++)
        right &= found[round] == THREADS - round * THREADS / 8;
    IS_TRUE(right);
    MUST(cudaFree(count));
}

// The last to come runs the completion while the others wait.
__global__ void complete(int *out)
{
    __shared__ int sum, total;
    auto add_up = [&] {
        total += sum;
        sum = 0;
    };
    using completing = cuda::barrier<cuda::thread_scope_block, decltype(add_up)>;
    __shared__ std::aligned_storage<sizeof(completing), alignof(completing)>::type storage;
    completing *barrier = reinterpret_cast<completing *>(&storage);

    if (threadIdx.x == 0) {
        sum = total = 0;
        new (barrier) completing(blockDim.x, add_up);
    }
    __syncthreads();
    for (int round = 0; round < 3; round++) {
        atomicAdd(&sum, (int)threadIdx.x);
        barrier->arrive_and_wait();
    }
    if (threadIdx.x == 0)
        *out = total;
}

static void completions()
{
    int *out = make(std::vector<int>(1));

    complete<<<1, THREADS>>>(out);
    IS_TRUE(take(out, 1)[0] == 3 * THREADS * (THREADS - 1) / 2);
    MUST(cudaFree(out));
}

// One warp makes, the others take: the two sides meet at one barrier in each direction.
__global__ void hand_over(int *out, int rounds)
{
    __shared__ block_barrier ready, free_again;
    __shared__ int value[32];
    int i = threadIdx.x;

    if (i == 0) {
        init(&ready, blockDim.x);
        init(&free_again, blockDim.x);
    }
    __syncthreads();
    for (int round = 0; round < rounds; round++) {
        if (i < 32) {
            value[i] = round * 32 + i;
            (void)ready.arrive();
            free_again.arrive_and_wait();
        } else {
            ready.arrive_and_wait();
            atomicAdd(&out[i % 32], value[i % 32]);
            (void)free_again.arrive();
        }
    }
}

static void makers_and_takers()
{
    int *out = make(std::vector<int>(32));
    bool right = true;

    hand_over<<<1, THREADS>>>(out, 5);
    std::vector<int> found = take(out, 32);
    for (int i = 0; i < 32; i++)
        right &= found[i] == 2 * (5 * i + 32 * 10);
    IS_TRUE(right);
    MUST(cudaFree(out));
}

// ---- Copies ----

__global__ void copy_with_barrier(int *out, const int *in)
{
    __shared__ block_barrier barrier;
    __shared__ alignas(16) int value[THREADS];
    int i = threadIdx.x;

    if (i == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&value[i], &in[i], cuda::aligned_size_t<4>(4), barrier);
    barrier.arrive_and_wait();
    out[i] = value[THREADS - 1 - i];
}

__global__ void copy_with_group(int *out, const int *in)
{
    __shared__ int value[THREADS];
    cg::thread_block block = cg::this_thread_block();

    cg::memcpy_async(block, value, in, sizeof(value));
    cg::wait(block);
    out[threadIdx.x] = value[THREADS - 1 - threadIdx.x];
}

// Two stages: one is filled while the other is read.
__global__ void copy_with_pipeline(int *out, const int *in, int count)
{
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ alignas(16) int value[2][THREADS];
    cg::thread_block block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    auto fill = [&](int at) {
        pipeline.producer_acquire();
        if (at < count)
            cuda::memcpy_async(block, value[at & 1], in + at * THREADS,
                               cuda::aligned_size_t<4>(sizeof(value[0])), pipeline);
        pipeline.producer_commit();
    };

    fill(0);
    for (int at = 0; at < count; at++) {
        fill(at + 1);
        pipeline.consumer_wait();
        out[at * THREADS + threadIdx.x] = value[at & 1][THREADS - 1 - threadIdx.x];
        pipeline.consumer_release();
    }
}

static bool is_reversed(const int *out, int count)
{
    std::vector<int> found = take(out, count * THREADS);
    for (int i = 0; i < count * THREADS; i++) {
        if (found[i] != i / THREADS * THREADS + THREADS - i % THREADS)
            return false;
    }
    return true;
}

static void copies()
{
    int *in = make(numbers(7 * THREADS)), *out = make(std::vector<int>(7 * THREADS));

    copy_with_barrier<<<1, THREADS>>>(out, in);
    IS_TRUE(is_reversed(out, 1));
    MUST(cudaMemset(out, 0, 7 * THREADS * sizeof(int)));
    copy_with_group<<<1, THREADS>>>(out, in);
    IS_TRUE(is_reversed(out, 1));
    copy_with_pipeline<<<1, THREADS>>>(out, in, 7);
    IS_TRUE(is_reversed(out, 7));
    MUST(cudaFree(in));
    MUST(cudaFree(out));
}

// ---- Counts ----

__global__ void count_arrivals(int *pending)
{
    __shared__ __mbarrier_t barrier;

    __mbarrier_init(&barrier, 5);
    for (int i = 0; i < 5; i++)
        pending[i] = __mbarrier_token_pending_count(__mbarrier_arrive(&barrier));
    pending[5] = __mbarrier_token_pending_count(__mbarrier_arrive_and_drop(&barrier));
    for (int i = 0; i < 4; i++)
        (void)__mbarrier_arrive(&barrier);
    pending[6] = __mbarrier_token_pending_count(__mbarrier_arrive(&barrier));
    __mbarrier_inval(&barrier);
}

static void counts()
{
    int *pending = make(std::vector<int>(7));

    count_arrivals<<<1, 1>>>(pending);
    for (int count : take(pending, 7))
        printf("pending %d\n", count);
    MUST(cudaFree(pending));
}

int main()
{
    RUN(phases);
    RUN(dropping_out);
    RUN(completions);
    RUN(makers_and_takers);
    RUN(copies);
    RUN(counts);
    return check_close();
}
