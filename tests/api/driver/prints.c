/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printf from the device: on the standard output of the program that launched, when it waits.
 */
#include "check.h"

#include <stdio.h>

static CUmodule module;

static void say(int number)
{
    void *parameters[] = {&number};

    launch_one(get_kernel(module, "say"), NULL, parameters);
}

/* Asking brings nothing out; waiting does, be it for something else. */
static void say_and_ask(int number)
{
    CUstream other;
    CUevent event;

    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    say(number);
    MUST(cuEventRecord(event, NULL));
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
        continue;
    MUST(cuStreamQuery(NULL));
    puts("asked");
    fflush(stdout);
    MUST(cuStreamSynchronize(other));
    puts("waited");
    fflush(stdout);
    say(number + 1);
    MUST(cuEventRecord(event, NULL));
    MUST(cuEventSynchronize(event));
    puts("waited for an event");
    fflush(stdout);
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(other));
}

/* A buffer may be set until a kernel that may print is launched; others do not matter. */
static void set_buffer(void)
{
    launch_one(get_kernel(load_kernels(), "nothing"), NULL, NULL);
    MUST(cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 12 << 20));
}

static void buffer_is_in_use(void)
{
    size_t size = 0;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 16 << 20));
    EXPECT(CUDA_SUCCESS, cuCtxGetLimit(&size, CU_LIMIT_PRINTF_FIFO_SIZE));
    IS_TRUE(size >= 12 << 20);
}

int main(void)
{
    check_open();
    module = load_talk();
    set_buffer();
    puts("before");
    fflush(stdout);
    for (int i = 1; i <= 3; i++)
        say(i);
    MUST(cuCtxSynchronize());
    buffer_is_in_use();
    puts("between");
    fflush(stdout);
    say(40);
    MUST(cuCtxSynchronize());
    puts("after");
    fflush(stdout);
    say_and_ask(50);
    return check_close();
}
