/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of several threads: each is made once, and its thread gets its own result. */
#include <pthread.h>
#include <stdatomic.h>

#include "fake_driver.h"
#include "launch_combiner.h"

#define THREADS 6
#define LAUNCHES 20000

static atomic_uint launched[THREADS + 1];

/* The results tell which launch they are of. */
static CUresult count_launch(CUgraphExec exec, CUstream stream)
{
    unsigned number = (unsigned)(uintptr_t)exec;

    if ((uintptr_t)stream != number)
        return CUDA_ERROR_UNKNOWN;
    return (CUresult)(number + atomic_fetch_add(&launched[number], 1) * (THREADS + 1));
}

struct worker {
    pthread_t thread;
    struct launch_combiner *combiner;
    unsigned number, wrong;
};

static void *launch_all(void *context)
{
    struct worker *worker = context;
    uintptr_t number = worker->number;
    int place = launch_combiner_join(worker->combiner);

    for (unsigned i = 0; i < LAUNCHES; i++)
        worker->wrong += launch_combined(worker->combiner, place, (CUgraphExec)number,
                                         (CUstream)number) != number + i * (THREADS + 1);
    launch_combiner_leave(worker->combiner, place);
    return NULL;
}

static void each_launch_is_made_once(void **state)
{
    struct worker workers[THREADS] = {0};
    struct launch_combiner *combiner = launch_combiner_create();

    driver.cuGraphLaunch = count_launch;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].combiner = combiner;
        workers[i].number = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, launch_all, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].wrong, 0);
        assert_int_equal(launched[i + 1], LAUNCHES);
    }
    launch_combiner_destroy(combiner);
}

static void places_are_limited_and_used_again(void **state)
{
    struct launch_combiner *combiner = launch_combiner_create();
    uint64_t seen = 0;

    for (unsigned i = 0; i < 64; i++)
        seen |= 1ull << launch_combiner_join(combiner);
    assert_true(seen == UINT64_MAX);
    assert_int_equal(launch_combiner_join(combiner), -1);
    launch_combiner_leave(combiner, -1);
    launch_combiner_leave(combiner, 17);
    assert_int_equal(launch_combiner_join(combiner), 17);
    launch_combiner_destroy(combiner);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(each_launch_is_made_once),
        CASE(places_are_limited_and_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
