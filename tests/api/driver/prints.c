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

int main(void)
{
    check_open();
    module = load_talk();
    puts("before");
    fflush(stdout);
    for (int i = 1; i <= 3; i++)
        say(i);
    MUST(cuCtxSynchronize());
    puts("between");
    fflush(stdout);
    say(40);
    MUST(cuCtxSynchronize());
    puts("after");
    fflush(stdout);
    say_and_ask(50);
    return check_close();
}
