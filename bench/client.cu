// SPDX-License-Identifier: Apache-2.0
// One client of the benchmark: an ordinary CUDA runtime program that does one kind of work for a
// while and says how it went. It knows nothing of Funnel, MPS or its neighbors; bench/run.py
// starts as many as a row asks for, in every mode.
//
//   client ROW SECONDS
//
// prints "ready" when its context stands, and waits for a line on standard input. Then it works for
// SECONDS, checks what it computed and prints one line of JSON. bench/README.md explains each row.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "bench client: %s: %s\n", #call, cudaGetErrorString(error_));          \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

// The program's kernels never print, but may for all that a driver can know.
#ifdef MAY_PRINT
#define NEVER_PRINT()                     \
    do {                                  \
        if (gridDim.z == 65535)           \
            printf("%u\n", threadIdx.x); \
    } while (0)
#else
#define NEVER_PRINT() ((void)0)
#endif

namespace {

// What a client may have of the device where its managed memory is not to fit.
constexpr size_t MANAGED_LIMIT = 512u << 20;
constexpr char MANAGED_LIMIT_TEXT[] = "0=512M";

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start)
{
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

double thread_cpu_seconds()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__global__ void empty_kernel() { NEVER_PRINT(); }

__global__ void count_kernel(unsigned *counter)
{
    NEVER_PRINT();
    if (threadIdx.x == 0)
        atomicAdd(counter, 1u);
}

// A chain of dependent fma: on an H100 20 000 steps take about 52 us whatever the grid.
__global__ void fma_kernel(float *out, int steps)
{
    NEVER_PRINT();
    float a = 0.0f;
    for (int i = 0; i < steps; i++)
        a = fmaf(a, 0.5f, 1.0f);
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

__global__ void tell_kernel(volatile unsigned *word, unsigned round)
{
    *word = round;
    __threadfence_system();
}

__global__ void nbody_kernel(const float4 *bodies, float4 *force, int n)
{
    __shared__ float4 tile[256];
    float4 me = bodies[blockIdx.x * blockDim.x + threadIdx.x];
    float x = 0, y = 0, z = 0;
    for (int start = 0; start < n; start += 256) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int j = 0; j < 256; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-4f);
            float s = tile[j].w * inverse * inverse * inverse;
            x += dx * s, y += dy * s, z += dz * s;
        }
        __syncthreads();
    }
    force[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(x, y, z, 0);
}

__global__ void add_kernel(unsigned *words, size_t count, unsigned value)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        words[i] += value;
}

__global__ void histogram_kernel(const unsigned *words, size_t count, unsigned *bins)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        atomicAdd(&bins[words[i] * 2654435761u >> 20], 1u);
}

// What a row reports. A unit of work is one launch, copy, allocation or step.
struct Result {
    long units = 0;
    double seconds = 0;
    double cpu_seconds = 0;         // of this thread, inside the calls that the row is about
    double bytes_per_unit = 0;
    std::vector<float> latencies;   // seconds
    bool correct = true;
};

void timed_loop(double limit, Result &result, const std::function<void()> &unit)
{
    auto start = clock_type::now();
    while (seconds_since(start) < limit) {
        auto begin = clock_type::now();
        unit();
        result.latencies.push_back((float)seconds_since(begin));
        result.units++;
    }
    result.seconds = seconds_since(start);
}

// Steps of fma_kernel that take `seconds` on this device, whatever it is.
int steps_for(double seconds, float *out, cudaStream_t stream)
{
    const int probe = 20000;
    double best = 1e9;
    for (int i = 0; i < 4; i++) {
        auto start = clock_type::now();
        fma_kernel<<<1, 32, 0, stream>>>(out, probe);
        CHECK(cudaStreamSynchronize(stream));
        best = std::min(best, seconds_since(start));
    }
    return (int)std::min(2e9, probe * seconds / best);
}

// A thread that never sleeps, and sees at once what a kernel writes into host memory.
class Reporter {
  public:
    Reporter()
    {
        CHECK(cudaHostAlloc((void **)&word, sizeof(*word), cudaHostAllocMapped));
        *word = 0;
        thread = std::thread([this] { watch(); });
    }

    ~Reporter()
    {
        stop = true;
        thread.join();
        CHECK(cudaFreeHost((void *)word));
    }

    clock_type::time_point saw(unsigned round)
    {
        while (seen.load() != round)
            ;
        return when;
    }

    volatile unsigned *word;

  private:
    void watch()
    {
        for (unsigned last = 0; !stop;) {
            if (*word == last)
                continue;
            when = clock_type::now();
            last = *word;
            seen = last;
        }
    }

    clock_type::time_point when;
    std::atomic<unsigned> seen{0};
    std::atomic<bool> stop{false};
    std::thread thread;
};

void *driver_entry(const char *name)
{
    cudaDriverEntryPointQueryResult found;
    void *entry = nullptr;
    CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 2000, 0, &found));
    return entry;
}

// A module of its own for every `number`, so that no cache knows it.
void load_module(unsigned long number)
{
    static PFN_cuModuleLoadData_v2000 load;
    static PFN_cuModuleGetFunction_v2000 find;
    static PFN_cuModuleUnload_v2000 unload;
    if (!load) {
        load = (decltype(load))driver_entry("cuModuleLoadData");
        find = (decltype(find))driver_entry("cuModuleGetFunction");
        unload = (decltype(unload))driver_entry("cuModuleUnload");
    }
    std::string name = "k" + std::to_string(getpid()) + "_" + std::to_string(number);
    std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry " + name +
                      "()\n{\n    ret;\n}\n";
    CUmodule module;
    CUfunction function;
    if (load(&module, ptx.c_str()) || find(&function, module, name.c_str()) || unload(module)) {
        fprintf(stderr, "bench client: a module could not be loaded\n");
        exit(2);
    }
}

struct Row {
    cudaStream_t stream;
    unsigned *counter;

    Row()
    {
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&counter, sizeof *counter));
        CHECK(cudaMemset(counter, 0, sizeof *counter));
        CHECK(cudaDeviceSynchronize());
    }

    unsigned counted()
    {
        unsigned value;
        CHECK(cudaMemcpy(&value, counter, sizeof value, cudaMemcpyDeviceToHost));
        return value;
    }

    Result launch_sync(double limit)
    {
        Result result;
        timed_loop(limit, result, [&] {
            empty_kernel<<<1, 32, 0, stream>>>();
            CHECK(cudaStreamSynchronize(stream));
        });
        count_kernel<<<1, 32, 0, stream>>>(counter);
        CHECK(cudaStreamSynchronize(stream));
        result.correct = counted() == 1;
        return result;
    }

    Result queued(double limit)
    {
        const int batch = 1000;
        Result result;
        auto start = clock_type::now();
        while (seconds_since(start) < limit) {
            double cpu = thread_cpu_seconds();
            for (int i = 0; i < batch; i++)
                count_kernel<<<1, 32, 0, stream>>>(counter);
            result.cpu_seconds += thread_cpu_seconds() - cpu;
            CHECK(cudaStreamSynchronize(stream));
            result.units += batch;
        }
        result.seconds = seconds_since(start);
        result.correct = counted() == (unsigned)result.units;
        return result;
    }

    // Kernels of two streams, each behind the other's last one by an event.
    Result crossed(double limit)
    {
        const int batch = 100;
        cudaStream_t other;
        cudaEvent_t events[2];
        CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
        for (cudaEvent_t &event : events)
            CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        Result result;
        auto start = clock_type::now();
        while (seconds_since(start) < limit) {
            for (int i = 0; i < batch; i++) {
                count_kernel<<<1, 32, 0, stream>>>(counter);
                CHECK(cudaEventRecord(events[0], stream));
                CHECK(cudaStreamWaitEvent(other, events[0], 0));
                count_kernel<<<1, 32, 0, other>>>(counter);
                CHECK(cudaEventRecord(events[1], other));
                CHECK(cudaStreamWaitEvent(stream, events[1], 0));
            }
            CHECK(cudaStreamSynchronize(stream));
            result.units += 2 * batch;
        }
        result.seconds = seconds_since(start);
        result.correct = counted() == (unsigned)result.units;
        return result;
    }

    Result small(double limit)
    {
        const int blocks = 16, threads = 256;
        float *out;
        std::vector<float> host(blocks * threads);
        CHECK(cudaMalloc(&out, host.size() * sizeof(float)));
        Result result;
        timed_loop(limit, result, [&] {
            fma_kernel<<<blocks, threads, 0, stream>>>(out, 20000);
            CHECK(cudaStreamSynchronize(stream));
        });
        CHECK(cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
        for (float value : host)
            result.correct &= value == 2.0f;
        return result;
    }

    Result nbody(double limit)
    {
        const int n = 131072;
        float4 *bodies, *force;
        CHECK(cudaMalloc(&bodies, n * sizeof *bodies));
        CHECK(cudaMalloc(&force, n * sizeof *force));
        std::vector<float4> host(n);
        for (int i = 0; i < n; i++)
            host[i] = make_float4(i % 64, i / 64 % 64, i / 4096, 1.0f);
        CHECK(cudaMemcpy(bodies, host.data(), n * sizeof *bodies, cudaMemcpyHostToDevice));
        Result result;
        timed_loop(limit, result, [&] {
            nbody_kernel<<<n / 256, 256, 0, stream>>>(bodies, force, n);
            CHECK(cudaStreamSynchronize(stream));
        });
        CHECK(cudaMemcpy(host.data(), force, n * sizeof *force, cudaMemcpyDeviceToHost));
        double sum = 0, size = 0;   // the forces of a closed system add up to nothing
        for (const float4 &f : host)
            sum += f.x, size += std::fabs(f.x);
        result.correct = size > 0 && std::fabs(sum) < 1e-3 * size;
        return result;
    }

    Result copy(double limit, bool to_device, bool pinned, size_t bytes)
    {
        char *device, *host, *back;
        CHECK(cudaMalloc(&device, bytes));
        if (pinned)
            CHECK(cudaMallocHost(&host, bytes));
        else
            host = (char *)malloc(bytes);
        back = (char *)malloc(bytes);
        for (size_t i = 0; i < bytes; i++)
            host[i] = (char)(i * 31 + i / 4096);
        memcpy(back, host, bytes);
        CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
        auto kind = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
        Result result;
        result.bytes_per_unit = bytes;
        timed_loop(limit, result, [&] {
            CHECK(cudaMemcpyAsync(to_device ? device : host, to_device ? host : device, bytes, kind,
                                  stream));
            CHECK(cudaStreamSynchronize(stream));
        });
        memset(host, 0, bytes);
        CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
        result.correct = memcmp(host, back, bytes) == 0;
        return result;
    }

    void add_one(unsigned *words, size_t count)
    {
        add_kernel<<<264, 256>>>(words, count, 1);
        CHECK(cudaDeviceSynchronize());
    }

    // What is timed is the kernel, the host's pass over the memory, or both.
    enum Managed { RESIDENT, FIRST, ATOMICS, READ, TURNS };

    void managed_unit(Managed what, unsigned *words, size_t count, unsigned *bins, unsigned round,
                      Result &result)
    {
        if (what == FIRST)
            for (size_t i = 0; i < count; i++)
                words[i] = round;
        if (what == READ)
            add_one(words, count);
        auto begin = clock_type::now();
        if (what == TURNS)
            for (size_t i = 0; i < count; i++)
                words[i]++;
        if (what == ATOMICS) {
            histogram_kernel<<<264, 256>>>(words, count, bins);
            CHECK(cudaDeviceSynchronize());
        } else if (what != READ) {
            add_one(words, count);
        }
        if (what == READ)
            for (size_t i = 0; i < count; i++)
                result.correct &= words[i] == round + 1;
        result.latencies.push_back((float)seconds_since(begin));
    }

    static void prefetch(void *at, size_t bytes, bool to_device)
    {
#if CUDART_VERSION >= 13000
        cudaMemLocation there = {to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost,
                                 0};
        CHECK(cudaMemPrefetchAsync(at, bytes, there, 0, nullptr));
#else
        CHECK(cudaMemPrefetchAsync(at, bytes, to_device ? 0 : cudaCpuDeviceId, nullptr));
#endif
    }

    // Host and kernel in turns, and the memory is where it will be used.
    Result managed_prefetched(double limit, size_t bytes)
    {
        const size_t count = bytes / sizeof(unsigned);
        unsigned *words;
        CHECK(cudaMallocManaged(&words, bytes));
        memset(words, 0, bytes);
        Result result;
        timed_loop(limit, result, [&] {
            for (size_t i = 0; i < count; i++)
                words[i]++;
            prefetch(words, bytes, true);
            add_kernel<<<264, 256>>>(words, count, 1);
            prefetch(words, bytes, false);
            CHECK(cudaDeviceSynchronize());
        });
        for (size_t i = 0; i < count; i += 97)
            result.correct &= words[i] == 2 * (unsigned)result.units;
        return result;
    }

    // The host fills what has just been allocated.
    Result managed_fill(double limit, size_t bytes)
    {
        const size_t count = bytes / sizeof(unsigned);
        Result result;
        auto start = clock_type::now();
        for (; seconds_since(start) < limit; result.units++) {
            unsigned *words;
            CHECK(cudaMallocManaged(&words, bytes));
            auto begin = clock_type::now();
            for (size_t i = 0; i < count; i++)
                words[i] = (unsigned)i;
            result.latencies.push_back((float)seconds_since(begin));
            result.correct &= words[count - 1] == (unsigned)(count - 1);
            CHECK(cudaFree(words));
        }
        result.seconds = seconds_since(start);
        return result;
    }

    // A kernel over an array of one and a half times the device memory that main() lets this client
    // have. It takes all of it in one launch, or a part after the other, each prefetched for ten
    // kernels.
    Result managed_large(double limit, bool by_parts)
    {
        const size_t bytes = MANAGED_LIMIT / 2 * 3, count = bytes / sizeof(unsigned);
        const size_t part = by_parts ? count / 12 : count;
        const unsigned kernels = by_parts ? 10 : 1;
        unsigned *words;
        CHECK(cudaMallocManaged(&words, bytes));
        CHECK(cudaMemset(words, 0, bytes));
        Result result;
        timed_loop(limit, result, [&] {
            for (size_t at = 0; at < count; at += part) {
                if (by_parts)
                    prefetch(words + at, part * sizeof(unsigned), true);
                for (unsigned i = 0; i < kernels; i++)
                    add_kernel<<<264, 256>>>(words + at, part, 1);
            }
            CHECK(cudaDeviceSynchronize());
        });
        for (size_t i = 0; i < count; i += 9973)
            result.correct &= words[i] == kernels * (unsigned)result.units;
        return result;
    }

    // cudaMallocManaged, used by host and kernels.
    Result managed(double limit, Managed what, size_t bytes)
    {
        const size_t count = bytes / sizeof(unsigned);
        unsigned *words, *bins;
        CHECK(cudaMallocManaged(&words, bytes));
        CHECK(cudaMallocManaged(&bins, 4096 * sizeof *bins));
        for (size_t i = 0; i < count; i++)
            words[i] = what == ATOMICS ? (unsigned)i : 0;
        memset(bins, 0, 4096 * sizeof *bins);
        if (what == RESIDENT || what == ATOMICS)
            add_one(words, count);
        Result result;
        auto start = clock_type::now();
        for (; seconds_since(start) < limit; result.units++)
            managed_unit(what, words, count, bins, (unsigned)result.units, result);
        result.seconds = seconds_since(start);
        unsigned rounds = (unsigned)result.units;
        const unsigned expected[] = {rounds + 1, rounds, 1, rounds, 2 * rounds};
        for (size_t i = 0; i < count; i += 97)
            result.correct &= words[i] == expected[what] + (what == ATOMICS ? (unsigned)i : 0);
        unsigned counted = 0;
        for (int i = 0; i < 4096; i++)
            counted += bins[i];
        if (what == ATOMICS)
            result.correct &= counted == (unsigned)(count * result.units);
        return result;
    }

    Result allocate(double limit, bool in_stream_order)
    {
        Result result;
        timed_loop(limit, result, [&] {
            void *p;
            if (in_stream_order) {
                CHECK(cudaMallocAsync(&p, 4 << 20, stream));
                CHECK(cudaFreeAsync(p, stream));
            } else {
                CHECK(cudaMalloc(&p, 4 << 20));
                CHECK(cudaFree(p));
            }
        });
        CHECK(cudaDeviceSynchronize());
        return result;
    }

    // Kernels of a fifth of a second, one after the other, on one multiprocessor.
    Result hold(double limit)
    {
        float *out;
        CHECK(cudaMalloc(&out, 32 * sizeof(float)));
        int steps = steps_for(0.2, out, stream);
        Result result;
        timed_loop(limit, result, [&] {
            fma_kernel<<<1, 32, 0, stream>>>(out, steps);
            CHECK(cudaStreamSynchronize(stream));
        });
        return result;
    }

    // One kernel of the whole time, on one multiprocessor.
    Result long_kernel(double limit)
    {
        float *out;
        CHECK(cudaMalloc(&out, 32 * sizeof(float)));
        int steps = steps_for(limit, out, stream);
        Result result;
        auto start = clock_type::now();
        fma_kernel<<<1, 32, 0, stream>>>(out, steps);
        CHECK(cudaStreamSynchronize(stream));
        result.seconds = seconds_since(start);
        result.latencies.push_back((float)result.seconds);
        result.units = 1;
        return result;
    }

    // How much later than a kernel of five milliseconds its waiter goes on, asleep meanwhile.
    Result wake(double limit)
    {
        float *out;
        CHECK(cudaMalloc(&out, 32 * sizeof(float)));
        Reporter reporter;
        int steps = steps_for(0.005, out, stream);
        Result result;
        auto start = clock_type::now();
        for (unsigned round = 1; seconds_since(start) < limit; round++) {
            fma_kernel<<<1, 32, 0, stream>>>(out, steps);
            tell_kernel<<<1, 1, 0, stream>>>(reporter.word, round);
            CHECK(cudaStreamSynchronize(stream));
            auto awake = clock_type::now();
            double late = std::chrono::duration<double>(awake - reporter.saw(round)).count();
            result.latencies.push_back((float)std::max(late, 0.0));
            result.units++;
        }
        result.seconds = seconds_since(start);
        return result;
    }

    // Does again and again what a driver may stop others for.
    Result disturb(double limit, const std::function<void()> &unit)
    {
        Result result;
        timed_loop(limit, result, [&] {
            unit();
            usleep(1000);
        });
        return result;
    }

    Result disturb_by(double limit, const std::string &what)
    {
        const size_t size = 64 << 20;
        void *memory = what == "register" ? malloc(size) : nullptr;
        unsigned long round = 0;
        return disturb(limit, [&, what] {
            void *p;
            cudaStream_t other;
            round++;
            if (what == "module") {
                load_module(round);
            } else if (what == "malloc") {
                CHECK(cudaMalloc(&p, size));
                CHECK(cudaFree(p));
            } else if (what == "pinned") {
                CHECK(cudaMallocHost(&p, size));
                CHECK(cudaFreeHost(p));
            } else if (what == "register") {
                CHECK(cudaHostRegister(memory, size, cudaHostRegisterDefault));
                CHECK(cudaHostUnregister(memory));
            } else if (what == "limit") {
                CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 2048 + 1024 * (round % 4)));
            } else if (what == "stream") {
                CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
                CHECK(cudaStreamDestroy(other));
            }
        });
    }

    Result idle(double limit)
    {
        Result result;
        double cpu = clock();
        timespec t = {(time_t)limit, (long)((limit - (long)limit) * 1e9)};
        nanosleep(&t, nullptr);
        result.cpu_seconds = (clock() - cpu) / CLOCKS_PER_SEC;
        result.units = 1;
        result.seconds = limit;
        return result;
    }

    // A store to an address without memory ends this program.
    Result fault(double)
    {
        tell_kernel<<<1, 1, 0, stream>>>(nullptr, 1);
        CHECK(cudaStreamSynchronize(stream));
        return Result();
    }
};

const std::map<std::string, std::function<Result(Row &, double)>> rows = {
    {"launch_sync", [](Row &r, double t) { return r.launch_sync(t); }},
    {"queued", [](Row &r, double t) { return r.queued(t); }},
    {"crossed", [](Row &r, double t) { return r.crossed(t); }},
    {"small", [](Row &r, double t) { return r.small(t); }},
    {"nbody", [](Row &r, double t) { return r.nbody(t); }},
    {"h2d_pageable", [](Row &r, double t) { return r.copy(t, true, false, 1 << 20); }},
    {"d2h_pageable", [](Row &r, double t) { return r.copy(t, false, false, 1 << 20); }},
    {"h2d_pageable_64m", [](Row &r, double t) { return r.copy(t, true, false, 64 << 20); }},
    {"d2h_pageable_64m", [](Row &r, double t) { return r.copy(t, false, false, 64 << 20); }},
    {"h2d_pinned", [](Row &r, double t) { return r.copy(t, true, true, 16 << 20); }},
    {"d2h_pinned", [](Row &r, double t) { return r.copy(t, false, true, 16 << 20); }},
    {"managed_kernel", [](Row &r, double t) { return r.managed(t, Row::RESIDENT, 256 << 20); }},
    {"managed_first", [](Row &r, double t) { return r.managed(t, Row::FIRST, 256 << 20); }},
    {"managed_atomics", [](Row &r, double t) { return r.managed(t, Row::ATOMICS, 256 << 20); }},
    {"managed_read", [](Row &r, double t) { return r.managed(t, Row::READ, 256 << 20); }},
    {"managed_turns_4k", [](Row &r, double t) { return r.managed(t, Row::TURNS, 4096); }},
    {"managed_turns_1m", [](Row &r, double t) { return r.managed(t, Row::TURNS, 1 << 20); }},
    {"managed_turns_256m", [](Row &r, double t) { return r.managed(t, Row::TURNS, 256 << 20); }},
    {"managed_turns_4k_prefetched", [](Row &r, double t) { return r.managed_prefetched(t, 4096); }},
    {"managed_turns_1m_prefetched",
     [](Row &r, double t) { return r.managed_prefetched(t, 1 << 20); }},
    {"managed_turns_256m_prefetched",
     [](Row &r, double t) { return r.managed_prefetched(t, 256 << 20); }},
    {"managed_fill", [](Row &r, double t) { return r.managed_fill(t, 256 << 20); }},
    {"managed_large", [](Row &r, double t) { return r.managed_large(t, false); }},
    {"managed_large_parts", [](Row &r, double t) { return r.managed_large(t, true); }},
    {"malloc", [](Row &r, double t) { return r.allocate(t, false); }},
    {"malloc_async", [](Row &r, double t) { return r.allocate(t, true); }},
    {"idle", [](Row &r, double t) { return r.idle(t); }},
    {"fault", [](Row &r, double t) { return r.fault(t); }},
    {"long_kernel", [](Row &r, double t) { return r.long_kernel(t); }},
    {"hold", [](Row &r, double t) { return r.hold(t); }},
    {"wake", [](Row &r, double t) { return r.wake(t); }},
    {"disturb_nothing", [](Row &r, double t) { return r.disturb_by(t, "nothing"); }},
    {"disturb_module", [](Row &r, double t) { return r.disturb_by(t, "module"); }},
    {"disturb_malloc", [](Row &r, double t) { return r.disturb_by(t, "malloc"); }},
    {"disturb_pinned", [](Row &r, double t) { return r.disturb_by(t, "pinned"); }},
    {"disturb_register", [](Row &r, double t) { return r.disturb_by(t, "register"); }},
    {"disturb_limit", [](Row &r, double t) { return r.disturb_by(t, "limit"); }},
    {"disturb_stream", [](Row &r, double t) { return r.disturb_by(t, "stream"); }},
};

double percentile_us(std::vector<float> &sorted, double p)
{
    return sorted.empty() ? 0
                          : sorted[std::min(sorted.size() - 1, (size_t)(sorted.size() * p))] * 1e6;
}

void report(Result &r, double first_call_ms, double start_ms)
{
    std::sort(r.latencies.begin(), r.latencies.end());
    printf("{\"units\": %ld, \"seconds\": %.6f, \"rate\": %.3f, "
           "\"p50_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f, \"cpu_us\": %.4f, "
           "\"gb_per_s\": %.4f, \"first_call_ms\": %.2f, "
           "\"start_ms\": %.2f, \"correct\": %s}\n",
           r.units, r.seconds, r.units / r.seconds, percentile_us(r.latencies, 0.5),
           percentile_us(r.latencies, 0.99), percentile_us(r.latencies, 1.0),
           r.cpu_seconds / r.units * 1e6, r.bytes_per_unit * r.units / r.seconds * 1e-9,
           first_call_ms, start_ms, r.correct ? "true" : "false");
}

} // namespace

int main(int argc, char **argv)
{
    auto row = argc == 3 ? rows.find(argv[1]) : rows.end();
    if (row == rows.end()) {
        fprintf(stderr, "usage: client ROW SECONDS, ROW one of:");
        for (auto &known : rows)
            fprintf(stderr, " %s", known.first.c_str());
        fprintf(stderr, "\n");
        return 2;
    }
    if (row->first.rfind("managed_large", 0) == 0)
        setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", MANAGED_LIMIT_TEXT, 1);
    auto start = clock_type::now();
    if (row->first == "wake")
        CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    CHECK(cudaFree(nullptr));
    double first_call_ms = seconds_since(start) * 1e3;
    Row work;
    empty_kernel<<<1, 32, 0, work.stream>>>();  // loads the module before the clock runs
    CHECK(cudaStreamSynchronize(work.stream));
    double start_ms = seconds_since(start) * 1e3;
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF)
        return 2;
    Result result = row->second(work, atof(argv[2]));
    report(result, first_call_ms, start_ms);
    return result.correct ? 0 : 1;
}
