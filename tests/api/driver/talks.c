/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose kernels talk: ROUNDS times it launches BLOCKS threads that print NUMBER and more,
 * and waits for them, or asks until they are done. At the end an assertion may fail. The test is
 * test_prints.py.
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
    MUST(cuStreamDestroy(stream));
    puts("end");
}

static int insist_on_nonsense(int number)
{
    void *parameters[] = {&number};

    say(number, 1, NULL);
    launch_one(get_kernel(module, "insist"), NULL, parameters);
    EXPECT(CUDA_ERROR_ASSERT, cuCtxSynchronize());
    return check_close();
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: talks NUMBER ROUNDS BLOCKS [asks | assert]\n", stderr);
        return 2;
    }
    check_open();
    module = load_talk();
    say_in_rounds(atoi(argv[1]), (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
                  argc > 4 && strcmp(argv[4], "asks") == 0);
    if (argc > 4 && strcmp(argv[4], "assert") == 0)
        return insist_on_nonsense(atoi(argv[1]));
    return check_close();
}
