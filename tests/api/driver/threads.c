/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads that share a context, each with work of its own, and some of it on handles that
 * they share.
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS 8
#define ROUNDS 50
#define WORDS 256

static CUcontext context;
static CUmodule module;
static bool done_right[THREADS];

static void add(CUstream stream, CUdeviceptr words, uint32_t value)
{
    uint32_t n = WORDS, turns = 10;
    void *parameters[] = {&words, &value, &n, &turns};

    MUST(cuLaunchKernel(get_kernel(module, "slow_add"), 2, 1, 1, 64, 1, 1, 0, stream, parameters,
                        NULL));
}

static bool one_round(CUstream stream, uint32_t number)
{
    CUdeviceptr words;
    CUevent event;
    bool right;

    MUST(cuMemAlloc_v2(&words, WORDS * sizeof(uint32_t)));
    MUST(cuMemsetD32Async(words, number, WORDS, stream));
    add(stream, words, 1);
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(event, stream));
    add(stream, words, 2);
    MUST(cuEventSynchronize(event));
    MUST(cuStreamSynchronize(stream));
    right = words_are(words, WORDS, number + 3);
    MUST(cuEventDestroy_v2(event));
    MUST(cuMemFree_v2(words));
    return right;
}

static void *work(void *number)
{
    int me = (int)(intptr_t)number;
    CUstream stream;

    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, me % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    done_right[me] = true;
    for (int round = 0; round < ROUNDS; round++)
        done_right[me] &= one_round(stream, (uint32_t)(me * 1000 + round));
    MUST(cuStreamDestroy_v2(stream));
    return NULL;
}

static void eight_at_once(void)
{
    pthread_t threads[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        IS_TRUE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        IS_TRUE(done_right[i]);
    }
}

static CUdeviceptr shared_words;

static void *add_on_default_stream(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < ROUNDS; i++)
        add(NULL, shared_words, 1);
    return NULL;
}

/* The legacy stream runs one thing at a time, whichever thread queued it. */
static void one_default_stream_for_all(void)
{
    pthread_t threads[THREADS];

    shared_words = make_words(WORDS, 0);
    for (int i = 0; i < THREADS; i++)
        IS_TRUE(pthread_create(&threads[i], NULL, add_on_default_stream, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(words_are(shared_words, WORDS, THREADS * ROUNDS));
    MUST(cuMemFree_v2(shared_words));
}

static void *load_and_unload(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 5; i++) {
        CUmodule mine = load_kernels();

        get_kernel(mine, "fill");
        MUST(cuModuleUnload(mine));
    }
    return NULL;
}

static void modules_at_once(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        IS_TRUE(pthread_create(&threads[i], NULL, load_and_unload, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

#define SHORT_LIVES 300

static CUdeviceptr waited_words;

static void *use_streams_once(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < SHORT_LIVES; i++) {
        CUstream stream;

        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        add(stream, waited_words, 1);
        MUST(cuStreamDestroy_v2(stream));
    }
    return NULL;
}

static void *wait_for_all(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < SHORT_LIVES; i++)
        MUST(cuCtxSynchronize());
    return NULL;
}

/* A thread may wait for the stream that another one destroys. */
static void streams_end_while_they_are_waited_for(void)
{
    pthread_t threads[THREADS];

    waited_words = make_words(WORDS, 0);
    for (int i = 0; i < THREADS; i++)
        IS_TRUE(pthread_create(&threads[i], NULL, i % 2 ? wait_for_all : use_streams_once, NULL) ==
                0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    MUST(cuMemFree_v2(waited_words));
}

int main(void)
{
    check_open();
    MUST(cuCtxGetCurrent(&context));
    module = load_kernels();
    RUN(eight_at_once);
    RUN(one_default_stream_for_all);
    RUN(modules_at_once);
    RUN(streams_end_while_they_are_waited_for);
    return check_close();
}
