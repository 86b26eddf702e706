/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of a program that sees two devices. Kernels of both use memory that was allocated
 * for either, and the host takes turns with them. Skips itself where there are no two devices.
 */
#include "check.h"

#include <stdio.h>

#define WORDS 30000u
#define DEVICES 2u

static CUcontext contexts[DEVICES];
static CUmodule kernels[DEVICES];

static uint32_t *words_of(CUdeviceptr address)
{
    return (uint32_t *)(uintptr_t)address;
}

static CUdeviceptr make_on(unsigned which)
{
    CUdeviceptr address;

    MUST(cuCtxSetCurrent(contexts[which]));
    MUST(cuMemAllocManaged(&address, WORDS * 4, CU_MEM_ATTACH_GLOBAL));
    for (uint32_t i = 0; i < WORDS; i++)
        words_of(address)[i] = i;
    return address;
}

static void add_on(unsigned which, CUstream stream, CUdeviceptr address, uint32_t value)
{
    uint32_t count = WORDS, turns = 0;
    void *parameters[] = {&address, &value, &count, &turns};

    MUST(cuCtxSetCurrent(contexts[which]));
    MUST(cuLaunchKernel(get_kernel(kernels[which], "slow_add"), 4, 1, 1, 64, 1, 1, 0, stream,
                        parameters, NULL));
}

static void wait_for_all(void)
{
    for (unsigned i = 0; i < DEVICES; i++) {
        MUST(cuCtxSetCurrent(contexts[i]));
        MUST(cuCtxSynchronize());
    }
}

static bool are_more_by(CUdeviceptr address, uint32_t value)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (words_of(address)[i] != i + value)
            return false;
    return true;
}

static void either_device_uses_either_memory(void)
{
    CUdeviceptr memory[DEVICES] = {make_on(0), make_on(1)};

    for (uint32_t round = 1; round <= 6; round++) {
        for (unsigned i = 0; i < DEVICES; i++)
            add_on((round + i) % DEVICES, NULL, memory[i], 1);
        wait_for_all();
        for (unsigned i = 0; i < DEVICES; i++)
            IS_TRUE(are_more_by(memory[i], 11 * round - 10));
        for (unsigned i = 0; i < DEVICES; i++)
            for (uint32_t at = 0; at < WORDS; at++)
                words_of(memory[i])[at] += 10;
    }
    for (unsigned i = 0; i < DEVICES; i++)
        MUST(cuMemFree_v2(memory[i]));
}

/* What the host has written is there for the first kernel of each device. */
static void both_find_what_was_written(void)
{
    CUdeviceptr memory = make_on(0);
    CUevent done;

    for (uint32_t round = 1; round <= 4; round++) {
        add_on(0, NULL, memory, 1);
        MUST(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
        MUST(cuEventRecord(done, NULL));
        MUST(cuCtxSetCurrent(contexts[1]));
        MUST(cuStreamWaitEvent(NULL, done, 0));
        add_on(1, NULL, memory, 1);
        wait_for_all();
        IS_TRUE(are_more_by(memory, 5 * round - 3));
        for (uint32_t at = 0; at < WORDS; at++)
            words_of(memory)[at] += 3;
        MUST(cuEventDestroy_v2(done));
    }
    MUST(cuMemFree_v2(memory));
}

static void prefetches_and_copies(void)
{
    CUdeviceptr here = make_on(0), there = make_on(1);

    MUST(cuMemPrefetchAsync(here, WORDS * 4, 1, NULL));
    add_on(1, NULL, here, 7);
    MUST(cuMemPrefetchAsync(here, WORDS * 4, CU_DEVICE_CPU, NULL));
    wait_for_all();
    IS_TRUE(are_more_by(here, 7));
    MUST(cuMemcpy(there, here, WORDS * 4));
    wait_for_all();
    IS_TRUE(are_more_by(there, 7));
    MUST(cuMemFree_v2(here));
    MUST(cuMemFree_v2(there));
}

/* One device alone. */
static void the_second_one_has_its_own(void)
{
    CUdeviceptr memory = make_on(1);
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint32_t round = 1; round <= 4; round++) {
        add_on(1, round % 2 ? stream : NULL, memory, 1);
        MUST(cuCtxSynchronize());
        IS_TRUE(are_more_by(memory, 2 * round - 1));
        for (uint32_t at = 0; at < WORDS; at++)
            words_of(memory)[at] += 1;
    }
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(memory));
}

int main(void)
{
    int devices;

    check_init();
    MUST(cuDeviceGetCount(&devices));
    if (devices < (int)DEVICES) {
        puts("no two devices");
        return 77;
    }
    for (unsigned i = 0; i < DEVICES; i++) {
        MUST(cuDevicePrimaryCtxRetain(&contexts[i], (CUdevice)i));
        MUST(cuCtxSetCurrent(contexts[i]));
        kernels[i] = load_kernels();
    }
    RUN(the_second_one_has_its_own);
    RUN(either_device_uses_either_memory);
    RUN(both_find_what_was_written);
    RUN(prefetches_and_copies);
    for (unsigned i = 0; i < DEVICES; i++)
        MUST(cuDevicePrimaryCtxRelease_v2((CUdevice)i));
    return check_close();
}
