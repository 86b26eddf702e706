/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose kernels print. ROUNDS times it launches BLOCKS threads that print NUMBER and
 * more, and waits for them, or asks until they are done. At the end, when a line comes on standard
 * input, an assertion may fail, of ours or of another program. The test is test_prints.py.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUmodule module;

static void say(int number, unsigned blocks, CUstream stream)
{
    void *parameters[] = {&number};

    MUST(cuLaunchKernel(get_kernel(module, "say"), blocks, 1, 1, 1, 1, 1, 0, stream, parameters,
                        NULL));
}

static void wait_by_asking(CUstream stream)
{
    CUresult result;

    while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
        continue;
    MUST(result);
}

static void say_in_rounds(int number, unsigned rounds, unsigned blocks, bool asks)
{
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (unsigned round = 0; round < rounds; round++) {
        printf("round %u\n", round);
        say(number, blocks, stream);
        if (asks)
            wait_by_asking(stream);
        else
            MUST(cuStreamSynchronize(stream));
    }
    if (asks)
        MUST(cuStreamSynchronize(stream)); /* which prints the output */
    MUST(cuStreamDestroy(stream));
    puts("end");
}

static void await_line(void)
{
    fflush(stdout);
    while (getchar() != '\n')
        continue;
}

/* A kernel of it may print, and goes on until a line comes. */
static int hold_until_line(int number, const char *kernel)
{
    volatile int *word;
    CUdeviceptr address;
    void *parameters[] = {&number, &address};

    MUST(cuMemHostAlloc((void **)&word, sizeof(*word), CU_MEMHOSTALLOC_DEVICEMAP));
    *word = 0;
    MUST(cuMemHostGetDevicePointer_v2(&address, (void *)word, 0));
    puts("round 0");
    launch_one(get_kernel(module, kernel), NULL, parameters);
    puts("holds");
    await_line();
    *word = 1;
    MUST(cuCtxSynchronize());
    puts("end");
    return check_close();
}

/* What is printed before the fault has to come out, too. */
static int fail_assertion(int number)
{
    void *parameters[] = {&number};

    await_line();
    say(number, 1, NULL);
    launch_one(get_kernel(module, "insist"), NULL, parameters);
    EXPECT(CUDA_ERROR_ASSERT, cuCtxSynchronize());
    return check_close();
}

/* Another program's assertion fails while this one has work in flight. */
static int see_a_fault(void)
{
    CUfunction nothing = get_kernel(load_kernels(), "nothing");
    CUresult result = CUDA_SUCCESS;

    await_line();
    while (result == CUDA_SUCCESS) {
        for (int i = 0; i < 100 && result == CUDA_SUCCESS; i++)
            result = cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        if (result == CUDA_SUCCESS)
            result = cuCtxSynchronize();
    }
    printf("error %d\n", result);
    return 0;
}

int main(int argc, char **argv)
{
    const char *role = argc > 4 ? argv[4] : "";

    if (argc < 4) {
        fputs("usage: talks NUMBER ROUNDS BLOCKS [asks | holds | quiet | assert | victim]\n",
              stderr);
        return 2;
    }
    check_open();
    module = load_talk();
    if (!strcmp(role, "holds"))
        return hold_until_line(atoi(argv[1]), "say_and_wait");
    if (!strcmp(role, "quiet")) {
        module = load_quiet();
        return hold_until_line(atoi(argv[1]), "stay");
    }
    say_in_rounds(atoi(argv[1]), (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
                  !strcmp(role, "asks"));
    if (!strcmp(role, "assert"))
        return fail_assertion(atoi(argv[1]));
    if (!strcmp(role, "victim"))
        return see_a_fault();
    return check_close();
}
