/* SPDX-License-Identifier: Apache-2.0 */
/* The small lock: one holder at a time, and no thread sleeps forever. */
#include "lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "unit.h"

#define THREADS 4
#define TURNS 20000

static struct lock lock;
static unsigned inside, turns;

static void *take_turns(void *argument)
{
    for (unsigned i = 0; i < TURNS; i++) {
        lock_take(&lock);
        assert_int_equal(inside++, 0);
        turns++;
        if (i % 64 == 0)
            sched_yield(); /* so that others come to wait */
        inside--;
        lock_give(&lock);
    }
    return argument;
}

static void one_at_a_time(void **state)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(turns, THREADS * TURNS);
    assert_int_equal(lock.state, LOCK_FREE);
}

static void *take_once(void *argument)
{
    lock_take(&lock);
    lock_give(&lock);
    return argument;
}

static void a_sleeper_is_woken(void **state)
{
    pthread_t thread;

    lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
    while (atomic_load_explicit(&lock.state, memory_order_relaxed) != LOCK_AWAITED)
        sched_yield();
    lock_give(&lock);
    pthread_join(thread, NULL);
    assert_int_equal(lock.state, LOCK_FREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(a_sleeper_is_woken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
