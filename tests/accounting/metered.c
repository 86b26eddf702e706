/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows how long its kernels ran, to compare with what Funnel says it used:
 *
 *     metered PATTERN SECONDS [BLOCKS]
 *
 *     one       a single kernel of that length
 *     late      the same, with a pause before the wait
 *     paced     kernels of 5 ms, each waited for, with pauses of the same length
 *     short     kernels of 0.5 ms, each waited for, with pauses of about the same length
 *     queued    kernels of 5 ms, queued without a wait, and then a pause until all are long done
 *     copies    copies of 16 MiB up, 8 MiB down and 4 MiB inside the device
 *
 * It says "ready", and begins when it reads a line. It prints how many kernels there were, and
 * the nanoseconds that they ran by the device's own clock. Then it prints the nanoseconds from each
 * launch to the end of its wait. It ends when it reads another line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_prototypes.h"

#define KERNELS_MAX 8192u

/* Each block writes the first time that it reads and the last one; the least and the largest of a
 * kernel's stay. */
static const char kernel_text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry spin(.param .u64 nanoseconds, .param .u64 slot)\n"
    "{\n"
    "    .reg .u64 %begin, %now, %later, %wanted, %slot;\n"
    "    .reg .pred %p;\n"
    "    ld.param.u64 %wanted, [nanoseconds];\n"
    "    ld.param.u64 %slot, [slot];\n"
    "    cvta.to.global.u64 %slot, %slot;\n"
    "    mov.u64 %begin, %globaltimer;\n"
    "    red.global.min.u64 [%slot], %begin;\n"
    "again:\n"
    "    mov.u64 %now, %globaltimer;\n"
    "    sub.u64 %now, %now, %begin;\n"
    "    add.u64 %later, %now, 100000;\n"
    "    setp.lt.u64 %p, %later, %wanted;\n"
    "    @%p nanosleep.u32 50000;\n"
    "    setp.lt.u64 %p, %now, %wanted;\n"
    "    @%p bra again;\n"
    "    mov.u64 %now, %globaltimer;\n"
    "    red.global.max.u64 [%slot+8], %now;\n"
    "    ret;\n"
    "}\n";

struct slot {
    uint64_t begin, end;
};

static CUfunction spin;
static CUstream stream;
static CUdeviceptr slots;
static unsigned launched, blocks = 1;
static uint64_t waited; /* from launches to the end of their waits */

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, result);
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_for(uint64_t nanoseconds)
{
    struct timespec t = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                         .tv_nsec = (long)(nanoseconds % 1000000000u)};

    nanosleep(&t, NULL);
}

static void launch(uint64_t nanoseconds)
{
    CUdeviceptr slot = slots + launched++ * sizeof(struct slot);
    void *parameters[] = {&nanoseconds, &slot};

    must(cuLaunchKernel(spin, blocks, 1, 1, 32, 1, 1, 0, stream, parameters, NULL), "launch");
}

static void run_paced(uint64_t length, uint64_t kernel)
{
    uint64_t end = now() + length;

    while (now() < end && launched < KERNELS_MAX) {
        uint64_t begin = now();
        launch(kernel);
        must(cuStreamSynchronize(stream), "cuStreamSynchronize");
        waited += now() - begin;
        pause_for(kernel);
    }
}

static void run_one(uint64_t length)
{
    uint64_t begin = now();

    launch(length);
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    waited += now() - begin;
}

static void run_late(uint64_t length)
{
    uint64_t begin = now();

    launch(length);
    pause_for(length / 3);
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    waited += now() - begin;
}

static void run_queued(uint64_t length)
{
    for (uint64_t asked = 0; asked < length && launched < KERNELS_MAX; asked += 5000000)
        launch(5000000);
    pause_for(3 * length);
}

static void run_copies(void)
{
    CUdeviceptr from, to;
    void *bytes = calloc(16, 1 << 20);

    must(cuMemAlloc_v2(&from, 16 << 20), "cuMemAlloc");
    must(cuMemAlloc_v2(&to, 16 << 20), "cuMemAlloc");
    must(cuMemcpyHtoD_v2(from, bytes, 16 << 20), "cuMemcpyHtoD");
    must(cuMemcpyDtoD_v2(to, from, 4 << 20), "cuMemcpyDtoD");
    must(cuMemcpyDtoH_v2(bytes, to, 8 << 20), "cuMemcpyDtoH");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    free(bytes);
}

static void play(const char *pattern, uint64_t length)
{
    if (!strcmp(pattern, "one"))
        run_one(length);
    else if (!strcmp(pattern, "late"))
        run_late(length);
    else if (!strcmp(pattern, "paced"))
        run_paced(length, 5000000);
    else if (!strcmp(pattern, "short"))
        run_paced(length, 500000);
    else if (!strcmp(pattern, "queued"))
        run_queued(length);
    else
        run_copies();
}

/* The copy back is counted, too, so it comes behind the answer for "copies". */
static void report(void)
{
    static struct slot found[KERNELS_MAX];
    uint64_t ran = 0;

    if (launched)
        must(cuMemcpyDtoH_v2(found, slots, launched * sizeof(*found)), "cuMemcpyDtoH");
    for (unsigned i = 0; i < launched; i++)
        ran += found[i].end - found[i].begin;
    printf("%llu %u %llu\n", (unsigned long long)ran, launched, (unsigned long long)waited);
}

static void prepare(void)
{
    static struct slot empty[KERNELS_MAX];
    CUdevice device;
    CUcontext context;
    CUmodule module;

    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, kernel_text), "cuModuleLoadData");
    must(cuModuleGetFunction(&spin, module, "spin"), "spin");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuMemAlloc_v2(&slots, sizeof(empty)), "cuMemAlloc");
    for (unsigned i = 0; i < KERNELS_MAX; i++)
        empty[i].begin = UINT64_MAX;
    must(cuMemcpyHtoD_v2(slots, empty, sizeof(empty)), "cuMemcpyHtoD");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
}

int main(int argc, char **argv)
{
    char line[16];

    if (argc < 3) {
        fprintf(stderr, "usage: metered one|late|paced|short|queued|copies SECONDS [BLOCKS]\n");
        return 2;
    }
    blocks = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare();
    puts("ready");
    if (!fgets(line, sizeof(line), stdin))
        return 1;
    play(argv[1], (uint64_t)(strtod(argv[2], NULL) * 1e9));
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    report();
    return fgets(line, sizeof(line), stdin) ? 0 : 1;
}
