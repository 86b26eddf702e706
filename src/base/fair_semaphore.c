/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that gives the semaphore back hands it to the first waiter, so none can overtake. */
#include "fair_semaphore.h"

#include <stddef.h>

#include "futex.h"
#include "spin.h"

/* On the stack of a thread that waits. */
struct waiter {
    struct list link;
    _Atomic uint32_t served; /* 1: the semaphore is this thread's */
};

void fair_semaphore_init(struct fair_semaphore *semaphore, unsigned count)
{
    *semaphore = (struct fair_semaphore){.free = count};
    list_init(&semaphore->waiting);
}

/* True when the semaphore was free. */
static bool take_or_queue(struct fair_semaphore *semaphore, struct waiter *waiter)
{
    _cleanup_lock_ struct lock *held = lock_hold(&semaphore->lock);

    if (semaphore->free) {
        semaphore->free--;
        return true;
    }
    list_append(&semaphore->waiting, &waiter->link);
    return false;
}

/* The thread sees everything that the previous owner did: partner serve_waiter(). */
static bool is_served(const struct waiter *waiter)
{
    return atomic_load_explicit(&waiter->served, memory_order_acquire);
}

/* The waiter may be gone as soon as it has seen this, and then the wake has no effect. Partner
 * is_served(). */
static void serve_waiter(struct waiter *waiter)
{
    atomic_store_explicit(&waiter->served, 1, memory_order_release);
    futex_wake(&waiter->served, 1);
}

void fair_semaphore_take(struct fair_semaphore *semaphore)
{
    struct waiter waiter = {.served = 0};
    struct spin spin = spin_begin();

    if (take_or_queue(semaphore, &waiter))
        return;
    while (!is_served(&waiter) && spin_more(&spin))
        ;
    while (!is_served(&waiter))
        futex_wait(&waiter.served, 0, 0);
}

/* The first that waits, which has the semaphore now, or NULL. */
static struct waiter *hand_over(struct fair_semaphore *semaphore)
{
    _cleanup_lock_ struct lock *held = lock_hold(&semaphore->lock);

    if (list_empty(&semaphore->waiting)) {
        semaphore->free++;
        return NULL;
    }
    struct waiter *first = list_first(&semaphore->waiting, struct waiter, link);
    list_remove(&first->link);
    return first;
}

void fair_semaphore_give(struct fair_semaphore *semaphore)
{
    struct waiter *next = hand_over(semaphore);

    if (next)
        serve_waiter(next);
}
