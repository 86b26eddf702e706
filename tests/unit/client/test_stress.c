/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences and the allocator under several threads. What a fence or a block protects is plain memory,
 * so ThreadSanitizer sees where they do not.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "client.h"
#include "client_fence.h"
#include "client_recovery.h"
#include "suballoc.h"
#include "unit.h"

#define THREADS 4u
#define ROUNDS 10000u

static void run_threads(void *(*run)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        assert_null(failures);
    }
}

/* ---- fences ---- */

static pthread_mutex_t channel = PTHREAD_MUTEX_INITIALIZER; /* in which numbers are issued */

/* What a client has asked of the GPU, and what the GPU leaves behind. */
static struct job {
    struct fence fence;
    uint32_t result;
    bool asked; /* atomic */
} jobs[THREADS];

static bool stop; /* atomic */
static uint32_t words[2 * THREADS];

static void work(struct job *job)
{
    if (!__atomic_load_n(&job->asked, __ATOMIC_ACQUIRE))
        return;
    job->result = job->fence.seq;
    __atomic_store_n(&job->asked, false, __ATOMIC_RELAXED);
    __atomic_store_n(&words[job->fence.word], job->fence.seq, __ATOMIC_RELEASE);
}

static void *be_the_gpu(void *context)
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
        uint32_t word = fence_word_take(0);
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
    recovery_init();
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

static void who_saw_the_fence_sees_the_work(void **state)
{
    pthread_t gpu;

    assert_int_equal(pthread_create(&gpu, NULL, be_the_gpu, NULL), 0);
    run_threads(launch_and_wait);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(gpu, NULL);
}

/* ---- the allocator ---- */

#define BASE UINT64_C(0x200000000000)
#define PAGES 4096u
#define HELD 8u

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static struct suballoc allocator;
static unsigned char pages[PAGES]; /* who has each 512 bytes; 0 = nobody */

static unsigned char *page_of(uint64_t address)
{
    return &pages[(address - BASE) / SUBALLOC_ALIGNMENT];
}

static bool paint(uint64_t address, unsigned count, unsigned char from, unsigned char to)
{
    unsigned char *page = page_of(address);
    bool right = true;

    for (unsigned i = 0; i < count; i++) {
        right &= page[i] == from;
        page[i] = to;
    }
    return right;
}

struct held {
    uint64_t address;
    unsigned count;
};

static bool take(struct held *held, unsigned count, unsigned char mine)
{
    pthread_mutex_lock(&pool);
    held->address = suballoc_take(&allocator, (uint64_t)count * SUBALLOC_ALIGNMENT, NULL);
    pthread_mutex_unlock(&pool);
    held->count = held->address ? count : 0;
    return paint(held->count ? held->address : BASE, held->count, 0, mine);
}

static bool give(struct held *held, unsigned char mine)
{
    if (!held->count)
        return true;
    bool right = paint(held->address, held->count, mine, 0);
    pthread_mutex_lock(&pool);
    right &= suballoc_give(&allocator, held->address) == 0;
    pthread_mutex_unlock(&pool);
    held->count = 0;
    return right;
}

static void *take_and_give(void *number)
{
    unsigned char mine = (unsigned char)((uintptr_t)number + 1);
    struct held held[HELD] = {0};
    uint64_t random = mine;
    uintptr_t failures = 0;

    for (unsigned round = 0; round < 10 * ROUNDS; round++) {
        struct held *one = &held[unit_random(&random) % HELD];
        failures +=
            one->count ? !give(one, mine) : !take(one, 1 + unit_random(&random) % 200, mine);
    }
    for (unsigned i = 0; i < HELD; i++)
        failures += !give(&held[i], mine);
    return (void *)failures;
}

static void nobody_has_what_another_has(void **state)
{
    suballoc_init(&allocator);
    assert_int_equal(suballoc_add_granule(&allocator, BASE, PAGES * SUBALLOC_ALIGNMENT), 0);
    run_threads(take_and_give);
    assert_int_equal(allocator.free_bytes, PAGES * SUBALLOC_ALIGNMENT);
    suballoc_fini(&allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_saw_the_fence_sees_the_work, attach, detach),
        cmocka_unit_test(nobody_has_what_another_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
