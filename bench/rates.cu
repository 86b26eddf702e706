// SPDX-License-Identifier: Apache-2.0
// How fast a device computes and reaches its memory: one kernel of each kind that matters to an
// interpreter of warps. Speaks the clients' language (clients.py):
//
//   rates KERNEL SECONDS
//
// prints "ready" when its context stands, and waits for a line on standard input. Then it launches
// for SECONDS, checks what was computed and prints one line of JSON: units of work a second, in
// thousands of millions. bench/README.md says what a unit is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "bench rates: %s: %s\n", #call, cudaGetErrorString(error_));           \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

namespace {

constexpr int THREADS = 256;
constexpr int COUNT = 1 << 20; // elements of the memory kernels
constexpr int BINS = 256;

// The same loop as in rates_host.c.
__global__ void fma_kernel(float *data, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = data[i];
    for (int round = 0; round < rounds; round++)
        a = fmaf(a, 0.99f, 0.5f);
    data[i] = a;
}

__global__ void copy_kernel(float *to, const float *from, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        to[i] = from[i];
}

__global__ void strided_kernel(float *to, const float *from, int count, int stride)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        to[i] = from[i * stride & (count - 1)];
}

__global__ void transpose_kernel(float *to, const float *from, int width)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][threadIdx.x] = from[(y + row) * width + x + threadIdx.x];
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8)
        to[(x + row) * width + y + threadIdx.x] = tile[threadIdx.x][row];
}

__global__ void histogram_kernel(unsigned *bins, const unsigned *values, int count)
{
    __shared__ unsigned mine[BINS];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[values[i] % BINS], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void atomics_kernel(unsigned *bins, const unsigned *values, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[values[i] % BINS], 1u);
}

// Every lane takes another number of steps, and at each of them one of two ways.
__host__ __device__ unsigned collatz_steps(unsigned n)
{
    unsigned steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

__global__ void collatz_kernel(unsigned *steps, unsigned count)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        steps[i] = collatz_steps(i + 1);
}

__global__ void nbody_kernel(const float4 *bodies, float4 *force, int n)
{
    __shared__ float4 tile[THREADS];
    float4 me = bodies[blockIdx.x * blockDim.x + threadIdx.x];
    float x = 0, y = 0, z = 0;
    for (int start = 0; start < n; start += THREADS) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < THREADS; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-4f);
            float s = tile[j].w * inverse * inverse * inverse;
            x += dx * s, y += dy * s, z += dz * s;
        }
        __syncthreads();
    }
    force[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(x, y, z, 0);
}

// One kernel, ready to be launched again and again, and what its first launch gave.
struct Work {
    double units; // of one launch
    std::function<void()> launch;
    std::function<bool()> is_correct;
};

template <typename T> T *device_copy(const std::vector<T> &host)
{
    T *device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <typename T> std::vector<T> host_copy(const T *device, size_t count)
{
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

std::vector<float> numbers(size_t count)
{
    std::vector<float> host(count);
    std::iota(host.begin(), host.end(), 0.0f);
    return host;
}

Work fma_work()
{
    const int blocks = 64, rounds = 4000;
    float *data = device_copy(numbers(blocks * THREADS));
    return {(double)blocks * THREADS * rounds,
            [=] { fma_kernel<<<blocks, THREADS>>>(data, rounds); },
            [=] { // all end at the point that the loop leaves alone
                for (float x : host_copy(data, blocks * THREADS)) {
                    if (std::fabs(x - 50.0f) > 0.01f)
                        return false;
                }
                return true;
            }};
}

Work copy_work(int stride)
{
    float *from = device_copy(numbers(COUNT)), *to = device_copy(std::vector<float>(COUNT));
    return {COUNT * 8.0,
            [=] {
                if (stride == 1)
                    copy_kernel<<<64, THREADS>>>(to, from, COUNT);
                else
                    strided_kernel<<<64, THREADS>>>(to, from, COUNT, stride);
            },
            [=] {
                auto found = host_copy(to, COUNT);
                for (size_t i = 0; i < COUNT; i++) {
                    if (found[i] != (float)(i * stride % COUNT))
                        return false;
                }
                return true;
            }};
}

Work transpose_work()
{
    const int width = 1024;
    float *from = device_copy(numbers(COUNT)), *to = device_copy(std::vector<float>(COUNT));
    return {COUNT * 8.0,
            [=] {
                transpose_kernel<<<dim3(width / 32, width / 32), dim3(32, 8)>>>(to, from, width);
            },
            [=] {
                auto found = host_copy(to, COUNT);
                for (int i = 0; i < COUNT; i++) {
                    if (found[i] != (float)(i % width * width + i / width))
                        return false;
                }
                return true;
            }};
}

Work counting_work(void (*kernel)(unsigned *, const unsigned *, int))
{
    std::vector<unsigned> host(COUNT);
    for (int i = 0; i < COUNT; i++)
        host[i] = (unsigned)i * 2654435761u >> 16;
    std::vector<unsigned> expected(BINS);
    for (unsigned value : host)
        expected[value % BINS]++;
    unsigned *values = device_copy(host), *bins = device_copy(std::vector<unsigned>(BINS));
    return {COUNT,
            [=] {
                CHECK(cudaMemsetAsync(bins, 0, BINS * sizeof *bins));
                kernel<<<64, BINS>>>(bins, values, COUNT);
            },
            [=] { return host_copy(bins, BINS) == expected; }};
}

Work collatz_work()
{
    const unsigned count = 1 << 16;
    unsigned *steps = device_copy(std::vector<unsigned>(count));
    double total = 0;
    for (unsigned i = 0; i < count; i++)
        total += collatz_steps(i + 1);
    return {total, [=] { collatz_kernel<<<count / THREADS, THREADS>>>(steps, count); },
            [=] {
                auto found = host_copy(steps, count);
                for (unsigned i = 0; i < count; i++) {
                    if (found[i] != collatz_steps(i + 1))
                        return false;
                }
                return true;
            }};
}

Work nbody_work()
{
    const int n = 4096;
    std::vector<float4> host(n);
    for (int i = 0; i < n; i++)
        host[i] = make_float4(i % 16, i / 16 % 16, i / 256, 1.0f);
    float4 *bodies = device_copy(host), *force = device_copy(std::vector<float4>(n));
    return {(double)n * n, [=] { nbody_kernel<<<n / THREADS, THREADS>>>(bodies, force, n); },
            [=] { // the forces of a closed system add up to nothing
                double sum = 0, size = 0;
                for (const float4 &f : host_copy(force, n))
                    sum += f.x, size += std::fabs(f.x);
                return size > 0 && std::fabs(sum) < 1e-3 * size;
            }};
}

const std::map<std::string, std::function<Work()>> works = {
    {"fma", fma_work},
    {"copy", [] { return copy_work(1); }},
    {"strided", [] { return copy_work(33); }},
    {"transpose", transpose_work},
    {"histogram", [] { return counting_work(histogram_kernel); }},
    {"atomics", [] { return counting_work(atomics_kernel); }},
    {"collatz", collatz_work},
    {"nbody", nbody_work},
};

double clock_seconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

// Of the best launch: what else the machine does only makes one slower.
struct Best {
    double seconds = 1e9;
    double cpu_seconds = 1e9; // of this process; a server's are not counted
};

Best best_launch(const Work &work, double limit)
{
    Best best;
    const double end = clock_seconds(CLOCK_MONOTONIC) + limit;
    while (clock_seconds(CLOCK_MONOTONIC) < end) {
        double begin = clock_seconds(CLOCK_MONOTONIC);
        double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        work.launch();
        CHECK(cudaDeviceSynchronize());
        best.seconds = std::min(best.seconds, clock_seconds(CLOCK_MONOTONIC) - begin);
        cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        best.cpu_seconds = std::min(best.cpu_seconds, cpu);
    }
    return best;
}

} // namespace

int main(int count, char **words)
{
    auto found = count == 3 ? works.find(words[1]) : works.end();
    if (found == works.end()) {
        fprintf(stderr, "usage: rates KERNEL SECONDS\n");
        return 2;
    }
    CHECK(cudaFree(nullptr));
    puts("ready");
    fflush(stdout);
    getchar();
    Work work = found->second();
    Best best = best_launch(work, atof(words[2]));
    bool correct = work.is_correct();
    printf("{\"giga\": %.6f, \"giga_a_core\": %.6f, \"correct\": %s}\n",
           work.units / best.seconds / 1e9, work.units / best.cpu_seconds / 1e9,
           correct ? "true" : "false");
    return correct ? 0 : 1;
}
