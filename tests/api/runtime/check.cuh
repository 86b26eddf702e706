// SPDX-License-Identifier: Apache-2.0
// What the runtime API programs share; the same idea as driver/check.h: a program is a list of
// tests, each prints its name and "ok", and two runs print the same.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

// Makes a kernel slow enough to be overtaken by work that does not wait for it.
#define SLOW 20000

#define MUST(call) check_must((call), #call, __FILE__, __LINE__)
#define EXPECT(result, call) check_expect((result), (call), #call, __LINE__)
#define IS_TRUE(condition) check_true((condition), #condition, __LINE__)
#define RUN(test) check_run((test), #test)

static int check_failures;

static inline void check_must(cudaError_t result, const char *call, const char *file, int line)
{
    if (result == cudaErrorNoDevice) {
        puts("no device");
        exit(77);
    }
    if (result == cudaSuccess)
        return;
    printf("line %d: %s: %s\n", line, call, cudaGetErrorName(result));
    exit(EXIT_FAILURE);
}

static inline void check_expect(cudaError_t expected, cudaError_t result, const char *call,
                                int line)
{
    if (result == expected)
        return;
    printf("line %d: %s: %s instead of %s\n", line, call, cudaGetErrorName(result),
           cudaGetErrorName(expected));
    check_failures++;
}

static inline void check_true(bool condition, const char *text, int line)
{
    if (condition)
        return;
    printf("line %d: not true: %s\n", line, text);
    check_failures++;
}

static inline void check_run(void (*test)(), const char *name)
{
    int before = check_failures;

    test();
    printf("%s: %s\n", name, check_failures == before ? "ok" : "FAILED");
    fflush(stdout);
}

static inline int check_close()
{
    return check_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline uint32_t next_random(uint32_t &state)
{
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

template <typename T> static T *make(const std::vector<T> &values)
{
    T *pointer;

    MUST(cudaMalloc(&pointer, values.size() * sizeof(T)));
    MUST(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize()); // a stream that does not block could overtake what is on its way
    return pointer;
}

template <typename T> static std::vector<T> take(const T *pointer, size_t count)
{
    std::vector<T> values(count);

    MUST(cudaMemcpy(values.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

// FNV-1a, for results that are too many to print.
static inline uint64_t checksum(const void *data, size_t size)
{
    const uint8_t *bytes = static_cast<const uint8_t *>(data);
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}
