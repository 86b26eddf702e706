/* SPDX-License-Identifier: Apache-2.0 */
/* A lock that threads hold for a moment, again and again, and mostly one thread. To take it when it
 * is free, and to give it back, takes one instruction each. All zero is a free lock. It is not
 * recursive, and serves the threads of one process. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
    _Atomic uint32_t state; /* enum lock_state; the futex of the waiters */
};

enum lock_state {
    LOCK_FREE,
    LOCK_TAKEN,
    LOCK_AWAITED, /* taken, and a thread may sleep on it */
};

/* Waits until the lock is this thread's. */
void lock_wait(struct lock *lock);

/* Wakes one sleeping waiter. */
void lock_wake(struct lock *lock);

/* The thread sees everything that the previous owner did: partner lock_give(). */
static inline void lock_take(struct lock *lock)
{
    uint32_t state = LOCK_FREE;

    if (!atomic_compare_exchange_strong_explicit(&lock->state, &state, LOCK_TAKEN,
                                                 memory_order_acquire, memory_order_relaxed))
        lock_wait(lock);
}

/* Gives the lock back: the next holder sees what was done, partner lock_take(). */
static inline void lock_give(struct lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_release) == LOCK_AWAITED)
        lock_wake(lock);
}

/* For a scope: _cleanup_lock_ struct lock *held = lock_hold(&object->lock); */
static inline struct lock *lock_hold(struct lock *lock)
{
    lock_take(lock);
    return lock;
}

static inline void cleanup_lock(struct lock **lock)
{
    lock_give(*lock);
}

#define _cleanup_lock_ __attribute__((cleanup(cleanup_lock), unused))
