/* SPDX-License-Identifier: Apache-2.0 */
/* A counting semaphore that serves threads in the order in which they came. One that sleeps on an
 * ordinary lock has to get there before all who come meanwhile, which on a busy machine it may
 * not do for a long time. Serves the threads of one process. */
#pragma once

#include "list.h"
#include "lock.h"

struct fair_semaphore {
    struct lock lock;
    unsigned free;       /* how many more threads may have it at the same time */
    struct list waiting; /* struct waiter, the one that came first in front */
};

/* `count` threads may have it at the same time. Nothing is to be freed in the end. */
void fair_semaphore_init(struct fair_semaphore *semaphore, unsigned count);

/* Waits for the caller's turn. The caller gives the turn back. */
void fair_semaphore_take(struct fair_semaphore *semaphore);
void fair_semaphore_give(struct fair_semaphore *semaphore);
