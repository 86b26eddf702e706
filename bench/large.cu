// SPDX-License-Identifier: Apache-2.0
// A program whose code is large. Each file compiled with -DPART=n brings sixteen kernels of some
// 150 KiB of machine code each, as a module of its own. The one compiled without is the program. It
// asks for every kernel, launches each, and does the same some more times. What the best of those
// takes is the program's own work, and what the first takes longer is loading. A launch runs one of
// the many segments that a kernel consists of, so the work is short.
#include <vector>

#include <cuda_runtime.h>

using Kernel = void (*)(unsigned *out, unsigned which, unsigned x);

struct Entry {
    Kernel kernel;
    unsigned seed;
};

std::vector<Entry> &entries();

constexpr unsigned SEGMENTS = 64;

__host__ __device__ constexpr unsigned segment(unsigned seed, unsigned number, unsigned x)
{
#pragma unroll
    for (unsigned i = 0; i < 48; i++)
        x = (x * (seed * 2654435761u + number * 97u + i * 2u + 1u)) ^ (x >> (i % 13u + 1u));
    return x;
}

#ifdef PART

#include <utility>

constexpr int KERNELS = 16;

template <unsigned SEED, unsigned... S>
__device__ unsigned choose(unsigned which, unsigned x, std::integer_sequence<unsigned, S...>)
{
    (void)((which == S && (x = segment(SEED, S, x), true)) || ...);
    return x;
}

template <unsigned SEED> __global__ void kernel(unsigned *out, unsigned which, unsigned x)
{
    *out = choose<SEED>(which, x, std::make_integer_sequence<unsigned, SEGMENTS>());
}

template <int... N> void enter(std::integer_sequence<int, N...>)
{
    (entries().push_back({kernel<PART * KERNELS + N + 1>, PART * KERNELS + N + 1}), ...);
}

static const bool entered = (enter(std::make_integer_sequence<int, KERNELS>()), true);

#else

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        cudaError_t error_ = (call);                                                     \
        if (error_ != cudaSuccess) {                                                     \
            fprintf(stderr, "bench large: %s: %s\n", #call, cudaGetErrorString(error_)); \
            exit(2);                                                                     \
        }                                                                                \
    } while (0)

std::vector<Entry> &entries()
{
    static std::vector<Entry> all;
    return all;
}

static double now_ms()
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

static void ask_for_all()
{
    for (const Entry &entry : entries()) {
        cudaFuncAttributes attributes;
        CHECK(cudaFuncGetAttributes(&attributes, entry.kernel));
    }
}

static void launch_all(unsigned *out, unsigned round)
{
    for (const Entry &entry : entries())
        entry.kernel<<<1, 1>>>(out++, entry.seed % SEGMENTS, round);
    CHECK(cudaDeviceSynchronize());
}

static bool is_correct(const unsigned *out, unsigned round)
{
    std::vector<unsigned> found(entries().size());
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof *out, cudaMemcpyDeviceToHost));
    for (const Entry &entry : entries())
        if (found[&entry - entries().data()] != segment(entry.seed, entry.seed % SEGMENTS, round))
            return false;
    return !found.empty();
}

// The time until every kernel was found and has run.
static double run(unsigned *out, unsigned round, bool *correct)
{
    double start = now_ms();
    ask_for_all();
    launch_all(out, round);
    double took = now_ms() - start;
    *correct = *correct && is_correct(out, round);
    return took;
}

int main()
{
    unsigned *out;
    bool correct = true;
    setenv("CUDA_MODULE_LOADING", "LAZY", 1); // else it is part of what makes the context
    CHECK(cudaFree(nullptr));
    CHECK(cudaMalloc(&out, entries().size() * sizeof *out));
    CHECK(cudaDeviceSynchronize());
    double first = run(out, 1, &correct);
    double again = first;
    for (unsigned round = 2; round < 10; round++)
        again = std::min(again, run(out, round, &correct));
    printf("{\"load_ms\": %.3f, \"work_ms\": %.3f, \"correct\": %s}\n", first - again, again,
           correct ? "true" : "false");
    return correct ? 0 : 1;
}

#endif
