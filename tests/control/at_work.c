/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is at work until it is killed:
 *
 *     at_work MICROSECONDS BLOCKS
 *
 * Its kernels take about that long and have so many blocks of 32 threads. Some are always queued.
 * They sleep meanwhile, so the software GPU leaves the CPU to others.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_prototypes.h"

#define QUEUED 4

static const char kernel_text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry work(.param .u64 nanoseconds)\n"
                                  "{\n"
                                  "    .reg .u64 %begin, %now, %wanted;\n"
                                  "    .reg .pred %p;\n"
                                  "    ld.param.u64 %wanted, [nanoseconds];\n"
                                  "    mov.u64 %begin, %globaltimer;\n"
                                  "again:\n"
                                  "    nanosleep.u32 1000000;\n"
                                  "    mov.u64 %now, %globaltimer;\n"
                                  "    sub.u64 %now, %now, %begin;\n"
                                  "    setp.lt.u64 %p, %now, %wanted;\n"
                                  "    @%p bra again;\n"
                                  "    ret;\n"
                                  "}\n";

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, result);
    exit(1);
}

static CUfunction prepare(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction work;

    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, kernel_text), "cuModuleLoadData");
    must(cuModuleGetFunction(&work, module, "work"), "cuModuleGetFunction");
    return work;
}

static void launch(CUfunction work, uint64_t nanoseconds, unsigned blocks)
{
    void *parameters[] = {&nanoseconds};

    must(cuLaunchKernel(work, blocks, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: at_work MICROSECONDS BLOCKS\n");
        return 2;
    }
    uint64_t nanoseconds = strtoull(argv[1], NULL, 10) * 1000;
    unsigned blocks = (unsigned)strtoul(argv[2], NULL, 10);
    CUfunction work = prepare();
    CUevent done[QUEUED];
    CUdeviceptr memory;

    must(cuMemAlloc_v2(&memory, 1 << 20), "cuMemAlloc");
    for (int i = 0; i < QUEUED; i++)
        must(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (unsigned turn = 0;; turn = (turn + 1) % QUEUED) {
        must(cuEventSynchronize(done[turn]), "cuEventSynchronize");
        launch(work, nanoseconds, blocks);
        must(cuEventRecord(done[turn], NULL), "cuEventRecord");
    }
}
