/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the host in the order of a stream.
 */
#include "check.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static CUmodule module;
static CUdeviceptr word;
static uint32_t *seen; /* pinned: the device's view at the time of a callback */
static atomic_int calls;
static int order[100];

static void queue_step(CUstream stream, uint32_t factor, uint32_t value, uint32_t turns)
{
    void *parameters[] = {&word, &factor, &value, &turns};

    launch_one(get_kernel(module, "step"), stream, parameters);
}

static void note(void *number)
{
    order[calls++] = (int)(intptr_t)number;
}

static void functions_run_in_order(void)
{
    CUstream stream;
    bool right = true;

    calls = 0;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (intptr_t i = 0; i < 100; i++) {
        if (i % 10 == 0)
            queue_step(stream, 1, 1, SLOW / 10);
        EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(stream, note, (void *)i));
    }
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(calls == 100);
    for (int i = 0; i < 100; i++)
        right &= order[i] == i;
    IS_TRUE(right);
    MUST(cuStreamDestroy_v2(stream));
}

static void take_a_while(void *value)
{
    usleep(20000);
    *seen = *(uint32_t *)value;
}

/* What follows in the stream waits for the function to return, and sees what it wrote. */
static void the_stream_waits(void)
{
    CUfunction copy = get_kernel(module, "copy");
    CUstream stream;
    CUdeviceptr from = 0;
    uint32_t value = 4711, n = 1;
    void *parameters[] = {&word, &from, &n};

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostGetDevicePointer_v2(&from, seen, 0));
    *seen = 0;
    EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(stream, take_a_while, &value));
    launch_one(copy, stream, parameters);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(word_at(word) == 4711);
    MUST(cuStreamDestroy_v2(stream));
}

static void on_done(CUstream stream, CUresult status, void *user)
{
    *(CUresult *)user = status;
    calls++;
}

static void stream_callbacks(void)
{
    CUstream stream;
    CUresult status = CUDA_ERROR_UNKNOWN;

    calls = 0;
    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    queue_step(stream, 1, 1, SLOW);
    EXPECT(CUDA_SUCCESS, cuStreamAddCallback(stream, on_done, &status, 0));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(calls == 1 && status == CUDA_SUCCESS);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, NULL, NULL, 0));
    MUST(cuStreamDestroy_v2(stream));
}

static void on_the_default_stream(void)
{
    calls = 0;
    queue_step(NULL, 1, 1, SLOW);
    EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(NULL, note, (void *)1));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(calls == 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(NULL, NULL, NULL));
}

int main(void)
{
    check_open();
    module = load_kernels();
    word = make_words(1, 0);
    MUST(cuMemHostAlloc((void **)&seen, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    RUN(functions_run_in_order);
    RUN(the_stream_waits);
    RUN(stream_callbacks);
    RUN(on_the_default_stream);
    MUST(cuMemFreeHost(seen));
    return check_close();
}
