/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many threads launch at the same time. Threads that launch into one context meet at a mutex of
 * NVIDIA's driver, and one that arrives just then gets it before those that sleep for it. With more
 * threads than CPUs one that sleeps comes too late again and again: of 32 clients one had 0.001 of
 * its share (H100). So then only half as many threads as there are CPUs call the driver, in the
 * order in which they came.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "fair_semaphore.h"
#include "server.h"

struct launch_slots {
    struct fair_semaphore semaphore;
    atomic_bool limited; /* more clients are at work than the CPUs can carry */
};

/* The slots of one context. NULL when out of memory. */
struct launch_slots *launch_slots_create(void);
/* NULL is allowed. */
void launch_slots_destroy(struct launch_slots *slots);

/* From any thread: whether more clients are at work than the CPUs can carry. */
void launch_slots_limit(struct server *server, bool limited);

/* Session thread: around a call that launches into the context of the device, and that waits for
 * nothing else. What the one returns goes to the other. */
static inline bool launch_slot_take(const struct device *device)
{
    /* A hint that orders nothing. Partner: launch_slots_limit(). */
    if (!atomic_load_explicit(&device->slots->limited, memory_order_relaxed))
        return false;
    fair_semaphore_take(&device->slots->semaphore);
    return true;
}

static inline void launch_slot_give(const struct device *device, bool taken)
{
    if (taken)
        fair_semaphore_give(&device->slots->semaphore);
}
