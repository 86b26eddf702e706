/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that work, to see what limits, priorities and terminate_client do to them:
 *
 *     limits_load ROLE SECONDS
 *
 *     steady    kernels of 0.2 ms, each waited for: COUNT RESULT WORST_MS
 *     calm      the same with 10 ms between two, which leaves the CPUs of a software GPU to others
 *     small     16 blocks of 0.05 ms, each kernel waited for: COUNT RESULT MEDIAN_US P99_US
 *     flood     always more blocks of 1 ms than fit on the device: COUNT RESULT
 *     order     kernels in one stream, each of which looks for its predecessor's number: COUNT
 *               RESULT RIGHT
 *     endless   a kernel that never ends; says "launched" once it runs and waits for it: RESULT,
 *               result of the next call
 *     busy      the same with a kernel that never sleeps
 *     queued    the same with thousands of kernels queued behind it
 *     fault     a kernel that writes where nothing is: RESULT, result of the next call
 *
 * Each says "ready" and begins when it reads a line. At an error it stops and reports.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_prototypes.h"

#define LATENCIES_MAX (1u << 20)
#define QUEUED_KERNELS 5000
#define FLOOD_DEPTH 4
#define PAUSE_NS 50000u

static const char kernel_text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry spin(.param .u64 nanoseconds)\n"
                                  "{\n"
                                  "    .reg .u64 %begin, %now, %later, %wanted;\n"
                                  "    .reg .pred %p;\n"
                                  "    ld.param.u64 %wanted, [nanoseconds];\n"
                                  "    mov.u64 %begin, %globaltimer;\n"
                                  "again:\n"
                                  "    mov.u64 %now, %globaltimer;\n"
                                  "    sub.u64 %now, %now, %begin;\n"
                                  "    add.u64 %later, %now, 100000;\n"
                                  "    setp.lt.u64 %p, %later, %wanted;\n"
                                  "    @%p nanosleep.u32 50000;\n"
                                  "    setp.lt.u64 %p, %now, %wanted;\n"
                                  "    @%p bra again;\n"
                                  "    ret;\n"
                                  "}\n"
                                  ".visible .entry endless(.param .u64 word, .param .u32 pause)\n"
                                  "{\n"
                                  "    .reg .u64 %a;\n"
                                  "    .reg .u32 %v, %t;\n"
                                  "    .reg .pred %p;\n"
                                  "    ld.param.u64 %a, [word];\n"
                                  "    ld.param.u32 %t, [pause];\n"
                                  "    cvta.to.global.u64 %a, %a;\n"
                                  "    st.volatile.global.u32 [%a+4], 1;\n"
                                  "again:\n"
                                  "    nanosleep.u32 %t;\n"
                                  "    ld.volatile.global.u32 %v, [%a];\n"
                                  "    setp.eq.u32 %p, %v, 0;\n"
                                  "    @%p bra again;\n"
                                  "    ret;\n"
                                  "}\n"
                                  ".visible .entry step(.param .u64 word, .param .u32 before)\n"
                                  "{\n"
                                  "    .reg .u64 %a;\n"
                                  "    .reg .u32 %v, %b;\n"
                                  "    .reg .pred %p;\n"
                                  "    ld.param.u64 %a, [word];\n"
                                  "    ld.param.u32 %b, [before];\n"
                                  "    cvta.to.global.u64 %a, %a;\n"
                                  "    ld.volatile.global.u32 %v, [%a];\n"
                                  "    setp.ne.u32 %p, %v, %b;\n"
                                  "    @%p bra done;\n"
                                  "    add.u32 %v, %v, 1;\n"
                                  "    st.volatile.global.u32 [%a], %v;\n"
                                  "done:\n"
                                  "    ret;\n"
                                  "}\n";

static CUfunction spin, endless, step;
static CUstream stream;
static CUdeviceptr
    word; /* of device memory, zero at first; behind it, whether endless() has begun */
static int sm_count;
static double limit; /* seconds */
static float latencies[LATENCIES_MAX];
static unsigned latency_count;

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, result);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static CUresult launch_spin(unsigned blocks, unsigned threads, uint64_t nanoseconds)
{
    void *parameters[] = {&nanoseconds};

    return cuLaunchKernel(spin, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

static CUresult launch_step(uint32_t before)
{
    void *parameters[] = {&word, &before};

    return cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* With pauses it leaves the CPUs of a software GPU to others. */
static CUresult launch_endless(uint32_t pause)
{
    void *parameters[] = {&word, &pause};

    return cuLaunchKernel(endless, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* Launches and waits again and again, and takes the times. */
static CUresult repeat(unsigned blocks, uint64_t nanoseconds, useconds_t between_us)
{
    double end = now() + limit;
    CUresult result = CUDA_SUCCESS;

    while (result == CUDA_SUCCESS && now() < end && latency_count < LATENCIES_MAX) {
        double begin = now();
        result = launch_spin(blocks, 32, nanoseconds);
        if (result == CUDA_SUCCESS)
            result = cuStreamSynchronize(stream);
        if (result == CUDA_SUCCESS)
            latencies[latency_count++] = (float)(now() - begin);
        if (between_us)
            usleep(between_us);
    }
    return result;
}

static int by_value(const void *a, const void *b)
{
    float first = *(const float *)a, second = *(const float *)b;

    return (first > second) - (first < second);
}

/* In seconds; of none it is 0. */
static double quantile(double q)
{
    if (!latency_count)
        return 0;
    qsort(latencies, latency_count, sizeof(*latencies), by_value);
    return (double)latencies[(unsigned)(q * (latency_count - 1))];
}

static void run_steady(useconds_t between_us)
{
    CUresult result = repeat(1, 200000, between_us);

    printf("%u %d %.1f\n", latency_count, result, quantile(1) * 1e3);
}

static void run_small(void)
{
    CUresult result = repeat(16, 50000, 0);

    printf("%u %d %.1f %.1f\n", latency_count, result, quantile(0.5) * 1e6, quantile(0.99) * 1e6);
}

/* At most so many kernels wait, so that it ends soon after it is to. */
static void run_flood(void)
{
    CUevent done[FLOOD_DEPTH];
    double end = now() + limit;
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < FLOOD_DEPTH; i++)
        must(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    while (result == CUDA_SUCCESS && now() < end) {
        CUevent event = done[count % FLOOD_DEPTH];
        result = cuEventSynchronize(event);
        if (result == CUDA_SUCCESS)
            result = launch_spin(8 * (unsigned)sm_count, 1024, 1000000);
        if (result == CUDA_SUCCESS)
            result = cuEventRecord(event, stream);
        count++;
    }
    if (result == CUDA_SUCCESS)
        result = cuStreamSynchronize(stream);
    printf("%u %d\n", count, result);
}

static void run_order(void)
{
    double end = now() + limit;
    uint32_t count = 0, right = 0;
    CUresult result = CUDA_SUCCESS;

    while (result == CUDA_SUCCESS && now() < end) {
        for (int i = 0; i < 100 && result == CUDA_SUCCESS; i++)
            result = launch_step(count++);
        if (result == CUDA_SUCCESS)
            result = cuStreamSynchronize(stream);
    }
    cuMemcpyDtoH_v2(&right, word, sizeof(right));
    printf("%u %d %u\n", count, result, right);
}

/* The copy goes another way than the kernel. */
static CUresult await_begin(void)
{
    uint32_t begun = 0;
    CUresult result = CUDA_SUCCESS;

    while (result == CUDA_SUCCESS && !begun)
        result = cuMemcpyDtoH_v2(&begun, word + sizeof(begun), sizeof(begun));
    return result;
}

static void run_endless(uint32_t pause, bool queued)
{
    CUresult result = launch_endless(pause);
    CUdeviceptr piece;

    if (result == CUDA_SUCCESS)
        result = await_begin();
    printf("launched %d\n", cuStreamQuery(stream));
    for (uint32_t i = 0; queued && i < QUEUED_KERNELS && result == CUDA_SUCCESS; i++)
        result = launch_step(i);
    if (result == CUDA_SUCCESS)
        result = cuStreamSynchronize(stream);
    printf("%d %d\n", result, cuMemAlloc_v2(&piece, 1 << 20));
}

static void run_fault(void)
{
    CUresult result;
    CUdeviceptr piece;

    word = 0x1000;
    result = launch_endless(PAUSE_NS);
    if (result == CUDA_SUCCESS)
        result = cuStreamSynchronize(stream);
    printf("%d %d\n", result, cuMemAlloc_v2(&piece, 1 << 20));
}

static void prepare(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;

    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuDeviceGetAttribute(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "sms");
    must(cuModuleLoadData(&module, kernel_text), "cuModuleLoadData");
    must(cuModuleGetFunction(&spin, module, "spin"), "spin");
    must(cuModuleGetFunction(&endless, module, "endless"), "endless");
    must(cuModuleGetFunction(&step, module, "step"), "step");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuMemAlloc_v2(&word, 2 * sizeof(uint32_t)), "cuMemAlloc");
    must(cuMemsetD32_v2(word, 0, 2), "cuMemsetD32");
    must(launch_spin(1, 32, 1000), "launch");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void play(const char *role)
{
    if (!strcmp(role, "steady"))
        run_steady(0);
    else if (!strcmp(role, "calm"))
        run_steady(10000);
    else if (!strcmp(role, "small"))
        run_small();
    else if (!strcmp(role, "flood"))
        run_flood();
    else if (!strcmp(role, "order"))
        run_order();
    else if (!strcmp(role, "fault"))
        run_fault();
    else if (!strcmp(role, "endless"))
        run_endless(PAUSE_NS, false);
    else
        run_endless(0, !strcmp(role, "queued"));
}

int main(int argc, char **argv)
{
    char line[16];

    if (argc != 3) {
        fprintf(stderr, "usage: limits_load steady|small|flood|order|endless|busy|queued|fault "
                        "SECONDS\n");
        return 2;
    }
    limit = strtod(argv[2], NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare();
    puts("ready");
    if (fgets(line, sizeof(line), stdin))
        play(argv[1]);
    return 0;
}
