/* SPDX-License-Identifier: Apache-2.0 */
/* Never more threads have the semaphore than may, and they get it in the order in which they came.
 */
#include "fair_semaphore.h"

#include <pthread.h>
#include <sched.h>

#include "unit.h"

#define THREADS 6
#define MOST 2
#define TURNS 5000

static struct fair_semaphore semaphore;
static _Atomic unsigned inside, turns;
static unsigned order[THREADS], arrived;

static void *take_turns(void *argument)
{
    for (unsigned i = 0; i < TURNS; i++) {
        fair_semaphore_take(&semaphore);
        assert_in_range(inside++, 0, MOST - 1);
        turns++;
        if (i % 64 == 0)
            sched_yield(); /* so that others come to wait */
        inside--;
        fair_semaphore_give(&semaphore);
    }
    return argument;
}

static void not_more_than_may(void **state)
{
    pthread_t threads[THREADS];

    fair_semaphore_init(&semaphore, MOST);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(turns, THREADS * TURNS);
    assert_int_equal(semaphore.free, MOST);
}

static void *take_once(void *number)
{
    fair_semaphore_take(&semaphore);
    order[arrived++] = (unsigned)(uintptr_t)number;
    fair_semaphore_give(&semaphore);
    return NULL;
}

static unsigned count_waiting(void)
{
    _cleanup_lock_ struct lock *held = lock_hold(&semaphore.lock);
    unsigned count = 0;

    for (struct list *at = semaphore.waiting.next; at != &semaphore.waiting; at = at->next)
        count++;
    return count;
}

static void in_the_order_of_arrival(void **state)
{
    pthread_t threads[THREADS];

    fair_semaphore_init(&semaphore, 1);
    fair_semaphore_take(&semaphore);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_once, (void *)(uintptr_t)i), 0);
        while (count_waiting() != i + 1)
            sched_yield();
    }
    fair_semaphore_give(&semaphore);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(order[i], i);
    assert_int_equal(semaphore.free, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_more_than_may),
        cmocka_unit_test(in_the_order_of_arrival),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
