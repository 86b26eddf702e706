/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences under several threads. What a fence protects is plain memory, so ThreadSanitizer sees
 * where it does not.
 */
#include <sched.h>
#include <stdlib.h>

#include "client.h"
#include "client_fence.h"
#include "recovery_hook.h"
#include "stress_threads.h"

static pthread_mutex_t channel = PTHREAD_MUTEX_INITIALIZER; /* in which numbers are issued */

/* What a client has asked of the GPU, and what the GPU leaves behind. */
static struct job {
    struct fence fence;
    uint32_t result;
    bool asked; /* atomic */
} jobs[THREADS];

static bool stop; /* atomic */
static _Atomic uint32_t words[2 * THREADS];

static void work(struct job *job)
{
    if (!__atomic_load_n(&job->asked, __ATOMIC_ACQUIRE))
        return;
    job->result = job->fence.seq;
    __atomic_store_n(&job->asked, false, __ATOMIC_RELAXED);
    words[job->fence.word] = job->fence.seq;
}

static void *act_as_gpu(void *context)
{
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        for (unsigned i = 0; i < THREADS; i++)
            work(&jobs[i]);
        sched_yield(); /* to those who wait, where there is one CPU */
    }
    return context;
}

static struct fence ask(struct job *job, uint32_t word)
{
    pthread_mutex_lock(&channel);
    struct fence fence = {.word = word, .seq = fence_issue(word)};
    pthread_mutex_unlock(&channel);
    job->fence = fence;
    __atomic_store_n(&job->asked, true, __ATOMIC_RELEASE);
    return fence;
}

/* Some streams live for one launch only, so that words change hands. */
static void *launch_and_wait(void *number)
{
    struct job *job = &jobs[(uintptr_t)number];
    uintptr_t failures = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t word = fence_word_take(0, 1, 1);
        for (unsigned launch = 0; launch <= round % 3; launch++) {
            struct fence fence = ask(job, word);
            enum fence_wait_mode mode = round % 256 ? FENCE_SPIN : FENCE_SLEEP;
            failures += fence_wait(fence, 0, mode) != CUDA_SUCCESS;
            failures += job->result != fence.seq;
        }
        fence_word_give(word);
    }
    return (void *)failures;
}

static int attach(void **state)
{
    client = calloc(1, sizeof(*client));
    client->channel.region = calloc(1, sizeof(*client->channel.region));
    client->fence_count = 2 * THREADS;
    client->fences = words;
    *state = client;
    return fence_init();
}

static int detach(void **state)
{
    free(client->channel.region);
    free(client);
    client = NULL;
    return 0;
}

static void test_work_is_seen_behind_its_fence(void **state)
{
    pthread_t gpu;

    assert_int_equal(pthread_create(&gpu, NULL, act_as_gpu, NULL), 0);
    run_threads(launch_and_wait);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(gpu, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_work_is_seen_behind_its_fence, attach, detach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
