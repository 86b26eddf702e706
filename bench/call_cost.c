/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the libcuda.so.1 that this process finds costs. Milliseconds from the process's start until
 * cuInit has returned, and nanoseconds of a short call and of a queued launch. Prints "start call
 * launch".
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_abi.h"
#include "cuda_prototypes.h"
#include "vector_add.ptx.h"

#define ROUNDS 9
#define CALLS 200000
#define LAUNCHES 2000

#define CHECK(call)                                              \
    do {                                                         \
        CUresult checked = (call);                               \
        if (checked != CUDA_SUCCESS) {                           \
            fprintf(stderr, #call ": error %d\n", (int)checked); \
            exit(1);                                             \
        }                                                        \
    } while (0)

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double short_call_ns(void)
{
    double best = 1e9;

    for (int round = 0; round < ROUNDS; round++) {
        double began = now_ms(), spent;
        CUcontext context;

        for (int i = 0; i < CALLS; i++)
            cuCtxGetCurrent(&context);
        spent = (now_ms() - began) * 1e6 / CALLS;
        best = spent < best ? spent : best;
    }
    return best;
}

static double launch_ns(CUfunction kernel, CUdeviceptr memory)
{
    uint32_t count = 32;
    void *parameters[] = {&memory, &memory, &memory, &count};
    double best = 1e9;

    for (int round = 0; round < ROUNDS; round++) {
        double began = now_ms(), spent;

        for (int i = 0; i < LAUNCHES; i++)
            CHECK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
        CHECK(cuCtxSynchronize());
        spent = (now_ms() - began) * 1e6 / LAUNCHES;
        best = spent < best ? spent : best;
    }
    return best;
}

/* argv[1] is the time at which the process was started, in ms of the monotonic clock. */
int main(int argc, char **argv)
{
    double start, began = argc > 1 ? strtod(argv[1], NULL) : now_ms();
    CUfunction kernel;
    CUdeviceptr memory;
    CUcontext context;
    CUmodule module;
    CUdevice device;

    CHECK(cuInit(0));
    start = now_ms() - began;
    if (argc > 2) {
        printf("%.3f\n", start);
        return 0;
    }
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, vector_add_ptx));
    CHECK(cuModuleGetFunction(&kernel, module, "vector_add"));
    CHECK(cuMemAlloc_v2(&memory, 4096));
    printf("%.3f %.2f %.1f\n", start, short_call_ns(), launch_ns(kernel, memory));
    return 0;
}
