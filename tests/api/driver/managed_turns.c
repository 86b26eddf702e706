/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host and kernels use managed memory at the same time, as a device allows whose
 * concurrentManagedAccess is 1, and as many programs do without asking. What both do is exact, and
 * memory that no kernel in flight was given is the host's meanwhile.
 */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "turns.ptx.h"

#define WORDS 16u
#define TURNS 400u
#define ROUNDS 6u
#define STREAMS 7u
#define LARGE (4u << 20) /* words */

/* What would not end by itself takes longer through Funnel, which waits for 5 s. */
#define SOON_S 4.0

static CUfunction add_often, await_host;
static uint32_t *flag; /* page-locked */

static void launch_add(CUstream stream, uint32_t *words)
{
    uint32_t count = WORDS, turns = TURNS;
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

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- exact ---- */

static uint32_t add_on_host(uint32_t *words)
{
    for (uint32_t i = 0; i < TURNS * 4; i++)
        __atomic_fetch_add(&words[i % WORDS], 1, __ATOMIC_RELAXED);
    return TURNS * 4;
}

static uint32_t sum(const uint32_t *words)
{
    uint32_t total = 0;

    for (uint32_t i = 0; i < WORDS; i++)
        total += words[i];
    return total;
}

static void add_together(const CUstream *streams, uint32_t count)
{
    uint32_t *large = make_managed_words(20000), *words = large + 10000, expected = 0;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < count; i++)
            launch_add(streams[i], words);
        expected += add_on_host(words) + count * 64 * TURNS;
        if (round % 2)
            MUST(cuCtxSynchronize());
    }
    MUST(cuCtxSynchronize());
    IS_TRUE(sum(words) == expected);
    free_managed_words(large);
}

static void on_the_default_stream(void)
{
    add_together(&(CUstream){NULL}, 1);
}

static void on_streams(uint32_t count)
{
    CUstream streams[STREAMS];

    for (uint32_t i = 0; i < count; i++)
        MUST(cuStreamCreate(&streams[i], i % 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    add_together(streams, count);
    for (uint32_t i = 0; i < count; i++)
        MUST(cuStreamDestroy_v2(streams[i]));
}

static void on_two_streams(void)
{
    on_streams(2);
}

static void on_many_streams(void)
{
    on_streams(STREAMS);
}

static bool becomes(const uint32_t *words, uint32_t expected)
{
    double began = seconds();

    while (sum(words) != expected && seconds() - began < SOON_S)
        usleep(1000);
    return sum(words) == expected;
}

/* The stream is gone when the host touches the memory, and its kernel may not have ended. */
static void on_streams_that_end(void)
{
    uint32_t *words = make_managed_words(WORDS);
    CUstream stream;

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        launch_add(stream, words);
        MUST(cuStreamDestroy_v2(stream));
        add_on_host(words);
    }
    IS_TRUE(becomes(words, ROUNDS * (64 + 4) * TURNS));
    free_managed_words(words);
}

static void in_a_graph(void)
{
    uint32_t *words = make_managed_words(WORDS);
    CUgraphExec exec;
    CUstream stream;
    CUgraph graph;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_add(stream, words);
    launch_add(stream, words);
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        MUST(cuGraphLaunch(exec, stream));
        add_on_host(words);
    }
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(sum(words) == ROUNDS * (128 + 4) * TURNS);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy_v2(stream));
    free_managed_words(words);
}

/* A stream that does not wait for the kernel has nothing to bring yet. */
static void beside_a_prefetch(void)
{
    uint32_t *words = make_managed_words(WORDS);
    CUstream streams[2];

    for (uint32_t i = 0; i < 2; i++)
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    launch_await(streams[0], words);
    MUST(cuMemPrefetchAsync((CUdeviceptr)(uintptr_t)words, WORDS * 4, CU_DEVICE_CPU, streams[1]));
    MUST(cuStreamSynchronize(streams[1]));
    let_it_end();
    words[1] += 1;
    MUST(cuStreamSynchronize(streams[0]));
    IS_TRUE(words[0] == 1 && words[1] == 1);
    for (uint32_t i = 0; i < 2; i++)
        MUST(cuStreamDestroy_v2(streams[i]));
    free_managed_words(words);
}

/* ---- side by side ---- */

static void other_memory_is_the_hosts(void)
{
    uint32_t *given = make_managed_words(WORDS), *other = make_managed_words(20000);
    double began;

    launch_add(NULL, other);
    MUST(cuCtxSynchronize());
    began = seconds();
    launch_await(NULL, given);
    for (uint32_t i = 0; i < 20000; i++)
        other[i] += i;
    let_it_end();
    IS_TRUE(seconds() - began < SOON_S);
    MUST(cuCtxSynchronize());
    IS_TRUE(given[0] == 1 && other[0] == 4 * TURNS && other[19999] == 19999);
    free_managed_words(given);
    free_managed_words(other);
}

/* What goes up just before the kernel is there again when the host fetches it beside the kernel. */
static void what_goes_up_comes_down(void)
{
    uint32_t *given = make_managed_words(WORDS), *other = make_managed_words(LARGE), wrong = 0;

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        for (uint32_t i = 0; i < LARGE; i += 1024)
            other[i] += 1;
        launch_add(NULL, given);
        wrong += other[LARGE - 1024] != round;
        MUST(cuCtxSynchronize());
    }
    IS_TRUE(wrong == 0);
    free_managed_words(given);
    free_managed_words(other);
}

/* An event tells that the kernel which was given the memory has ended; the next one has not. */
static void memory_of_an_earlier_launch_is_the_hosts(void)
{
    uint32_t *given = make_managed_words(WORDS), *earlier = make_managed_words(WORDS);
    CUevent event;
    double began;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    began = seconds();
    launch_add(NULL, earlier);
    MUST(cuEventRecord(event, NULL));
    launch_await(NULL, given);
    MUST(cuEventSynchronize(event));
    add_on_host(earlier);
    let_it_end();
    IS_TRUE(seconds() - began < SOON_S);
    MUST(cuCtxSynchronize());
    IS_TRUE(sum(earlier) == (64 + 4) * TURNS && given[0] == 1);
    MUST(cuEventDestroy_v2(event));
    free_managed_words(given);
    free_managed_words(earlier);
}

static void *touch(void *word)
{
    __atomic_fetch_add((uint32_t *)word, 10, __ATOMIC_RELAXED);
    return NULL;
}

/* Threads that touch what the kernel has may sleep; another one goes on. */
static void threads_do_not_wait_for_each_other(void)
{
    uint32_t *given = make_managed_words(5000), *other = make_managed_words(20000);
    pthread_t threads[3];
    double began = seconds();

    launch_await(NULL, given);
    for (uint32_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, touch, given + i * 2000);
    usleep(20000);
    for (uint32_t i = 0; i < 20000; i++)
        other[i] += i;
    let_it_end();
    for (uint32_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    IS_TRUE(seconds() - began < SOON_S);
    MUST(cuCtxSynchronize());
    IS_TRUE(given[0] == 11 && given[2000] == 10 && given[4000] == 10 && other[19999] == 19999);
    free_managed_words(given);
    free_managed_words(other);
}

/* ---- a kernel that does not end before the host has touched its memory ---- */

/* Several pieces of it: only the first one takes long. */
static void the_host_goes_on_at_last(void)
{
    uint32_t *given = make_managed_words(200000);
    double began = seconds();

    launch_await(NULL, given);
    for (uint32_t i = 1000; i < 200000; i += 1000)
        given[i] += 1;
    let_it_end();
    IS_TRUE(seconds() - began < 2 * SOON_S);
    MUST(cuCtxSynchronize());
    free_managed_words(given);
}

static void run_what_ends_by_itself(void)
{
    RUN(on_the_default_stream);
    RUN(on_two_streams);
    RUN(on_many_streams);
    RUN(on_streams_that_end);
    RUN(in_a_graph);
    RUN(what_goes_up_comes_down);
}

/* Their kernels wait for this program, which needs the driver meanwhile. A call of another program
 * that waits for all kernels would keep it out: so nothing else runs beside them. */
static void run_what_waits_for_the_host(void)
{
    RUN(beside_a_prefetch);
    RUN(other_memory_is_the_hosts);
    RUN(memory_of_an_earlier_launch_is_the_hosts);
    RUN(threads_do_not_wait_for_each_other);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    CUmodule module;

    check_open();
    MUST(cuModuleLoadData(&module, turns_ptx));
    add_often = get_kernel(module, "add_often");
    await_host = get_kernel(module, "await_host");
    MUST(cuMemHostAlloc((void **)&flag, 4, 0));
    if (!strcmp(part, "at-last"))
        RUN(the_host_goes_on_at_last);
    else if (!strcmp(part, "waits"))
        run_what_waits_for_the_host();
    else
        run_what_ends_by_itself();
    return check_close();
}
