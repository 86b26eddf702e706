/* SPDX-License-Identifier: Apache-2.0 */
/* The slow paths: sleeping for a lock, and waking a thread that sleeps. */
#include "lock.h"

#include "futex.h"

/* A thread that has waited leaves the lock awaited, for it cannot know whether others still sleep.
 * Each of them is woken by the one before, and the last wakes none. */
void lock_wait(struct lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, LOCK_AWAITED, memory_order_acquire) != LOCK_FREE)
        futex_wait(&lock->state, LOCK_AWAITED, 0);
}

void lock_wake(struct lock *lock)
{
    futex_wake(&lock->state, 1);
}
