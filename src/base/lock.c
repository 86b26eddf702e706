/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a lock. */
#include "lock.h"

#include "futex.h"

/* Whoever has waited leaves the lock awaited, for it can not know whether others still sleep: each
 * of them is woken by the one before, the last by nobody's need. */
void lock_wait(struct lock *lock)
{
    while (__atomic_exchange_n(&lock->state, LOCK_AWAITED, __ATOMIC_ACQUIRE) != LOCK_FREE)
        futex_wait(&lock->state, LOCK_AWAITED, 0);
}

void lock_wake(struct lock *lock)
{
    futex_wake(&lock->state, 1);
}
