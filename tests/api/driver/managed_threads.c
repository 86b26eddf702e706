/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share nothing use managed memory side by side. What each writes is there for its
 * kernels and for itself, whatever the work of another thread moves meanwhile.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "turns.ptx.h"

#define THREADS 3u
#define WORDS 1000u
#define ROUNDS 300u

static CUfunction add_often, await_host;
static CUcontext context;
static uint32_t *flag; /* page-locked */

static CUstream make_stream(void)
{
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* Adds 1 to each of the first 32 words, twice. */
static void launch_add(CUstream stream, uint32_t *words)
{
    uint32_t count = WORDS, turns = 1;
    void *parameters[] = {&words, &count, &turns};

    MUST(cuLaunchKernel(add_often, 2, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static void launch_await(CUstream stream, uint32_t *out)
{
    void *parameters[] = {&flag, &out};

    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
    launch_one(await_host, stream, parameters);
}

static void let_it_end(void)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void fill(uint32_t *words, uint32_t first)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = first + i;
}

static bool was_added_to(const uint32_t *words, uint32_t first)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (words[i] != first + i + (i < 32 ? 2 : 0))
            return false;
    return true;
}

/* ---- each with its own array and stream ---- */

static void *take_turns(void *array)
{
    uint32_t *words = array, round;
    CUstream stream;

    MUST(cuCtxSetCurrent(context));
    stream = make_stream();
    for (round = 0; round < ROUNDS; round++) {
        fill(words, round * 10000);
        launch_add(stream, words);
        MUST(cuStreamSynchronize(stream));
        if (!was_added_to(words, round * 10000))
            break;
    }
    MUST(cuStreamDestroy_v2(stream));
    return (void *)(uintptr_t)round;
}

static void in_turns_side_by_side(void)
{
    uint32_t *arrays[THREADS];
    pthread_t threads[THREADS];
    void *rounds;

    for (uint32_t i = 0; i < THREADS; i++)
        arrays[i] = make_managed_words(WORDS);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_turns, arrays[i]);
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &rounds);
        IS_TRUE((uintptr_t)rounds == ROUNDS);
        free_managed_words(arrays[i]);
    }
}

/* ---- handlers of signals ---- */

#define SIGNALED 200000u

static uint32_t *signaled;
static volatile sig_atomic_t signals;

static void on_alarm(int number)
{
    (void)number;
    signaled[(uint32_t)signals * 997 % SIGNALED]++;
    signals++;
}

static void alarm_every(long us)
{
    const struct itimerval timer = {{0, us}, {0, us}};

    setitimer(ITIMER_REAL, &timer, NULL);
}

/* A handler may run at any place inside the library. */
static void handlers_use_managed_memory(void)
{
    uint32_t *words = make_managed_words(WORDS * 100), total = 0;
    uint32_t round = 0;

    signaled = make_managed_words(SIGNALED);
    signals = 0;
    signal(SIGALRM, on_alarm);
    alarm_every(200);
    for (; round < ROUNDS || signals < (int)ROUNDS; round++) {
        launch_add(NULL, words);
        MUST(cuCtxSynchronize());
        words[round % 100 * WORDS + 40] += 1;
        free_managed_words(make_managed_words(WORDS));
    }
    alarm_every(0);
    for (uint32_t i = 0; i < SIGNALED; i++)
        total += signaled[i];
    IS_TRUE(total == (uint32_t)signals);
    IS_TRUE(words[0] == 2 * round);
    free_managed_words(words);
    free_managed_words(signaled);
}

/* ---- a stack in managed memory ---- */

#define STACK_WORDS (1u << 18)

/* The first error of the calls, as a pointer. */
static void *launch_from_managed_stack(void *array)
{
    uint32_t *words = array, count = WORDS, turns = 1;
    void *parameters[] = {&words, &count, &turns};
    CUresult result = cuCtxSetCurrent(context);

    for (uint32_t round = 0; round < ROUNDS && result == CUDA_SUCCESS; round++) {
        result = cuLaunchKernel(add_often, 2, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        if (result == CUDA_SUCCESS)
            result = cuCtxSynchronize();
    }
    return (void *)(uintptr_t)result;
}

/* Such a thread is served, or is told that it is not: it does not hang. */
static void a_stack_is_managed(void)
{
    uint32_t *words = make_managed_words(WORDS), *stack = make_managed_words(STACK_WORDS);
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;

    fill(words, 0);
    launch_add(NULL, words);
    MUST(cuCtxSynchronize());
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_WORDS * sizeof(*stack));
    IS_TRUE(pthread_create(&thread, &attributes, launch_from_managed_stack, words) == 0);
    pthread_attr_destroy(&attributes);
    pthread_join(thread, &result);
    IS_TRUE((uintptr_t)result == CUDA_SUCCESS || (uintptr_t)result == CUDA_ERROR_NOT_SUPPORTED);
    launch_add(NULL, words);
    MUST(cuCtxSynchronize());
    IS_TRUE(words[0] == (result ? 4 : 4 + 2 * ROUNDS));
    free_managed_words(words);
    free_managed_words(stack);
}

/* ---- beside a kernel that waits for the host ---- */

static void *wait_for_stream(void *stream)
{
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamSynchronize(stream));
    return NULL;
}

/* The host and kernels have used the array in turns before the other thread begins to wait. */
static void another_thread_waits(void)
{
    uint32_t *words = make_managed_words(WORDS), *given = make_managed_words(WORDS);
    CUstream busy = make_stream(), stream = make_stream();
    pthread_t thread;

    for (uint32_t round = 0; round < 3; round++) {
        fill(words, 0);
        launch_add(stream, words);
        MUST(cuStreamSynchronize(stream));
        IS_TRUE(was_added_to(words, 0));
    }
    launch_await(busy, given);
    pthread_create(&thread, NULL, wait_for_stream, busy);
    usleep(50000);
    words[WORDS - 1] = 1;
    launch_add(stream, words);
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words[WORDS - 1] == 1 && words[0] == 4);
    words[0] = 5;
    let_it_end();
    pthread_join(thread, NULL);
    IS_TRUE(words[0] == 5 && given[0] == 1);
    free_managed_words(words);
    free_managed_words(given);
    MUST(cuStreamDestroy_v2(busy));
    MUST(cuStreamDestroy_v2(stream));
}

static void *end_it_soon(void *unused)
{
    (void)unused;
    usleep(50000);
    let_it_end();
    return NULL;
}

/* Another stream works on the array before it has come down. */
static void a_prefetch_comes_late(void)
{
    uint32_t *words = make_managed_words(WORDS), *given = make_managed_words(WORDS);
    CUstream busy = make_stream(), stream = make_stream();
    pthread_t thread;

    launch_add(stream, words);
    MUST(cuStreamSynchronize(stream));
    launch_await(busy, given);
    MUST(cuMemPrefetchAsync((CUdeviceptr)(uintptr_t)words, WORDS * 4, CU_DEVICE_CPU, busy));
    launch_add(stream, words);
    MUST(cuStreamSynchronize(stream));
    pthread_create(&thread, NULL, end_it_soon, NULL);
    words[0] += 1;
    pthread_join(thread, NULL);
    MUST(cuCtxSynchronize());
    IS_TRUE(words[0] == 5 && words[1] == 4 && given[0] == 1);
    free_managed_words(words);
    free_managed_words(given);
    MUST(cuStreamDestroy_v2(busy));
    MUST(cuStreamDestroy_v2(stream));
}

int main(int argc, char **argv)
{
    CUmodule module;

    check_open();
    MUST(cuCtxGetCurrent(&context));
    MUST(cuModuleLoadData(&module, turns_ptx));
    add_often = get_kernel(module, "add_often");
    await_host = get_kernel(module, "await_host");
    MUST(cuMemHostAlloc((void **)&flag, 4, 0));
    if (argc > 1 && !strcmp(argv[1], "waits")) {
        RUN(another_thread_waits);
        RUN(a_prefetch_comes_late);
    } else if (argc > 1 && !strcmp(argv[1], "stack")) {
        RUN(a_stack_is_managed);
    } else {
        RUN(in_turns_side_by_side);
        RUN(handlers_use_managed_memory);
    }
    return check_close();
}
