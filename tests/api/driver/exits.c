/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a program: handlers that were registered before and after cuInit, work that is still
 * queued, handles that are still open. Nothing may hang or crash.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

static CUdeviceptr words;

/* By now the driver may or may not be shut down; the call must come back. */
static void registered_first(void)
{
    cuMemFree_v2(words);
    cuCtxSynchronize();
    puts("registered first, runs last");
}

static void registered_last(void)
{
    IS_TRUE(words_are(words, 100, 3));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(words));
    puts("registered last, runs first");
}

int main(void)
{
    CUmodule module;
    CUstream stream;
    uint32_t value = 1, n = 100, turns = SLOW;
    void *parameters[] = {&words, &value, &n, &turns};

    atexit(registered_first);
    check_open();
    atexit(registered_last);
    module = load_kernels();
    words = make_words(100, 0);
    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (int i = 0; i < 3; i++)
        launch_one(get_kernel(module, "slow_add"), stream, parameters);
    puts("main is over");
    return 0;
}
