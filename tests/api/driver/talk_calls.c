/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that print and functions of the host, among each other in several streams: neither may
 * ever wait for the other. All kernels print the same, so that the order does not show.
 */
#include "check.h"

#include <stdatomic.h>
#include <unistd.h>

#define STREAMS 6
#define ROUNDS 40

static CUmodule module;
static CUstream streams[STREAMS];
static atomic_uint calls;

static void say(CUstream stream)
{
    int number = 7;
    void *parameters[] = {&number};

    launch_one(get_kernel(module, "say"), stream, parameters);
}

static void count_call(void *unused)
{
    calls++;
}

static void take_a_while(void *unused)
{
    usleep(2000);
    calls++;
}

static void synchronise_all(void)
{
    for (int i = 0; i < STREAMS; i++)
        EXPECT(CUDA_SUCCESS, cuStreamSynchronize(streams[i]));
}

static void prints_and_calls_take_turns(void)
{
    calls = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STREAMS; i++) {
            say(streams[i]);
            EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(streams[i], count_call, NULL));
        }
    }
    synchronise_all();
    IS_TRUE(calls == STREAMS * ROUNDS);
}

/* More than the driver may have room for, behind one that takes its time. */
static void many_calls_wait(void)
{
    calls = 0;
    say(streams[0]);
    EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(streams[0], take_a_while, NULL));
    for (int i = 0; i < 700; i++)
        EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(streams[0], count_call, NULL));
    say(streams[0]);
    say(streams[1]);
    synchronise_all();
    IS_TRUE(calls == 701);
}

/* The host waits for one stream, while others are held by functions that take their time. */
static void held_streams_are_in_nobodys_way(void)
{
    calls = 0;
    for (int round = 0; round < 10; round++) {
        for (int i = 1; i < STREAMS; i++) {
            say(streams[i]);
            EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(streams[i], take_a_while, NULL));
        }
        say(streams[0]);
        EXPECT(CUDA_SUCCESS, cuStreamSynchronize(streams[0]));
    }
    synchronise_all();
    IS_TRUE(calls == 10 * (STREAMS - 1));
}

/* A stream that waits for a word, which the program writes when it has seen a kernel's end. */
static void words_and_prints(void)
{
    CUdeviceptr on_device;
    uint32_t *word;

    MUST(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&on_device, word, 0));
    for (uint32_t round = 1; round <= 10; round++) {
        say(streams[0]);
        EXPECT(CUDA_SUCCESS,
               cuStreamWaitValue32_v2(streams[0], on_device, round, CU_STREAM_WAIT_VALUE_GEQ));
        say(streams[1]);
        EXPECT(CUDA_SUCCESS, cuStreamSynchronize(streams[1]));
        __atomic_store_n(word, round, __ATOMIC_RELEASE);
        EXPECT(CUDA_SUCCESS, cuStreamSynchronize(streams[0]));
    }
    MUST(cuMemFreeHost(word));
}

int main(void)
{
    check_open();
    module = load_talk();
    for (int i = 0; i < STREAMS; i++)
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    RUN(prints_and_calls_take_turns);
    RUN(many_calls_wait);
    RUN(held_streams_are_in_nobodys_way);
    RUN(words_and_prints);
    for (int i = 0; i < STREAMS; i++)
        MUST(cuStreamDestroy_v2(streams[i]));
    MUST(cuModuleUnload(module));
    return check_close();
}
