// SPDX-License-Identifier: Apache-2.0
// cuda::atomic of every type, scope and order, and what is made of it: latches and semaphores.
#include "check.cuh"

#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>

#pragma nv_diag_suppress static_var_with_dynamic_init

#define THREADS 96
#define BLOCKS 3

// All threads do all of it; what remains does not depend on their order.
template <typename T, cuda::thread_scope SCOPE> __global__ void arithmetic(T *out)
{
    cuda::atomic_ref<T, SCOPE> sum(out[0]), least(out[1]), most(out[2]), swapped(out[3]);
    T value = static_cast<T>(threadIdx.x + 1), seen;

    sum.fetch_add(value, cuda::memory_order_relaxed);
    sum.fetch_add(value, cuda::memory_order_seq_cst);
    sum.fetch_sub(static_cast<T>(1), cuda::memory_order_acq_rel);
    least.fetch_min(value, cuda::memory_order_release);
    most.fetch_max(value, cuda::memory_order_acquire);
    seen = swapped.load(cuda::memory_order_relaxed);
    while (!swapped.compare_exchange_weak(seen, seen + 2, cuda::memory_order_acq_rel))
        ;
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, SCOPE);
}

template <typename T> __global__ void bitwise(T *out)
{
    cuda::atomic_ref<T, cuda::thread_scope_device> all(out[0]), any(out[1]), odd(out[2]),
        last(out[3]);
    T bit = static_cast<T>(1) << threadIdx.x % (8 * sizeof(T));

    all.fetch_and(static_cast<T>(~bit));
    any.fetch_or(bit);
    odd.fetch_xor(bit);
    odd.fetch_xor(threadIdx.x % 3 ? bit : 0);
    last.exchange(static_cast<T>(7));
}

template <typename T, cuda::thread_scope SCOPE> static bool adds_up()
{
    std::vector<T> start = {0, 100, 0, 1};
    T *out = make(start);

    arithmetic<T, SCOPE><<<BLOCKS, THREADS>>>(out);
    MUST(cudaGetLastError());
    std::vector<T> got = take(out, 4);
    MUST(cudaFree(out));
    return got[0] == static_cast<T>(BLOCKS * (THREADS * (THREADS + 1) - THREADS)) && got[1] == 1 &&
           got[2] == THREADS && got[3] == static_cast<T>(1 + 2 * BLOCKS * THREADS);
}

template <typename T> static bool mixes()
{
    std::vector<T> start = {static_cast<T>(-1), 0, 0, 0};
    T *out = make(start), odd = 0;

    bitwise<<<BLOCKS, THREADS>>>(out);
    MUST(cudaGetLastError());
    for (int i = 0; i < BLOCKS * THREADS; i++)
        odd ^= i % THREADS % 3 ? 0 : static_cast<T>(1) << i % THREADS % (8 * sizeof(T));
    std::vector<T> got = take(out, 4);
    MUST(cudaFree(out));
    return got[0] == 0 && got[1] == static_cast<T>(-1) && got[2] == odd && got[3] == 7;
}

static void types()
{
    IS_TRUE((adds_up<int, cuda::thread_scope_system>()));
    IS_TRUE((adds_up<unsigned, cuda::thread_scope_device>()));
    IS_TRUE((adds_up<long long, cuda::thread_scope_device>()));
    IS_TRUE((adds_up<unsigned long long, cuda::thread_scope_system>()));
    IS_TRUE((adds_up<float, cuda::thread_scope_device>()));
    IS_TRUE((adds_up<double, cuda::thread_scope_system>()));
    IS_TRUE((adds_up<unsigned short, cuda::thread_scope_device>()));
    IS_TRUE((adds_up<unsigned char, cuda::thread_scope_device>()));
    IS_TRUE(mixes<unsigned char>());
    IS_TRUE(mixes<short>());
    IS_TRUE(mixes<unsigned>());
    IS_TRUE(mixes<unsigned long long>());
}

// ---- The older functions ----

__global__ void functions_kernel(int *out, unsigned *wrapping, double *real)
{
    __shared__ int own;
    int i = threadIdx.x;

    if (i == 0)
        own = 0;
    __syncthreads();
    atomicAdd_block(&own, i);
    atomicMax(&own, 10);
    __syncthreads();
    if (i == 0)
        atomicAdd_system(&out[0], own);
    atomicInc(&wrapping[0], 9);
    atomicDec(&wrapping[1], 9);
    atomicAdd(real, 0.5);
    for (int seen = out[1], old = seen;; seen = old) {
        old = atomicCAS(&out[1], seen, seen ^ (i << 1 | 1));
        if (old == seen)
            break;
    }
}

static void functions()
{
    int *out = make(std::vector<int>(2));
    unsigned *wrapping = make(std::vector<unsigned>{3, 3});
    double *real = make(std::vector<double>(1));
    int odd = 0;

    functions_kernel<<<BLOCKS, THREADS>>>(out, wrapping, real);
    MUST(cudaGetLastError());
    for (int i = 0; i < BLOCKS * THREADS; i++)
        odd ^= i % THREADS << 1 | 1;
    IS_TRUE(take(out, 2) == (std::vector<int>{BLOCKS * THREADS * (THREADS - 1) / 2, odd}));
    IS_TRUE(take(wrapping, 2) ==
            (std::vector<unsigned>{(3 + BLOCKS * THREADS) % 10,
                                   (10 * THREADS + 3 - BLOCKS * THREADS) % 10}));
    IS_TRUE(take(real, 1)[0] == BLOCKS * THREADS / 2.0);
    MUST(cudaFree(out));
    MUST(cudaFree(wrapping));
    MUST(cudaFree(real));
}

// ---- Messages between blocks ----

// The first block hands numbers over, one at a time; the second sums them up.
__global__ void talk(int *box, cuda::atomic<int, cuda::thread_scope_device> *turn, int *sum,
                     int count)
{
    if (threadIdx.x)
        return;
    for (int i = 0; i < count; i++) {
        while (turn->load(cuda::memory_order_acquire) != (int)(2 * i + blockIdx.x))
            __nanosleep(20);
        if (blockIdx.x == 0)
            *box = i * i;
        else
            *sum += *box;
        turn->fetch_add(1, cuda::memory_order_release);
    }
}

static void messages()
{
    int *words = make(std::vector<int>(3));

    talk<<<2, 32>>>(words,
                    reinterpret_cast<cuda::atomic<int, cuda::thread_scope_device> *>(words + 1),
                    words + 2, 20);
    MUST(cudaGetLastError());
    IS_TRUE(take(words, 3)[2] == 2470);
    MUST(cudaFree(words));
}

__global__ void meet(int *out)
{
    __shared__ cuda::latch<cuda::thread_scope_block> *latch;
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 4> *semaphore;
    __shared__ int inside, total;

    if (threadIdx.x == 0) {
        latch = new cuda::latch<cuda::thread_scope_block>(blockDim.x);
        semaphore = new cuda::counting_semaphore<cuda::thread_scope_block, 4>(1);
        inside = total = 0;
    }
    __syncthreads();
    semaphore->acquire();
    total += ++inside == 1;
    inside--;
    semaphore->release();
    latch->arrive_and_wait();
    out[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        delete latch;
        delete semaphore;
    }
}

static void latches_and_semaphores()
{
    int *out = make(std::vector<int>(THREADS));

    meet<<<1, THREADS>>>(out);
    MUST(cudaGetLastError());
    IS_TRUE(take(out, THREADS) == std::vector<int>(THREADS, THREADS));
    MUST(cudaFree(out));
}

int main()
{
    RUN(types);
    RUN(functions);
    RUN(messages);
    RUN(latches_and_semaphores);
    return check_close();
}
