/* SPDX-License-Identifier: Apache-2.0 */
/* The slow paths: sleeping for a lock, and waking a thread that sleeps. */
#include "lock.h"

#include "futex.h"

/* A thread that has waited leaves the lock awaited, for it cannot know whether others still sleep:
 * each of them is woken by the one before, and the last wakes none. */
void lock_wait(struct lock *lock)
{
    while (__atomic_exchange_n(&lock->state, LOCK_AWAITED, __ATOMIC_ACQUIRE) != LOCK_FREE)
        futex_wait(&lock->state, LOCK_AWAITED, 0);
}

void lock_wake(struct lock *lock)
{
    futex_wake(&lock->state, 1);
}
