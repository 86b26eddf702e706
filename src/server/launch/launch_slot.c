/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_slot.h. */
#include "launch_slot.h"

#include "cpus.h"
#include "launch_state.h"

/* The clients want CPUs as well. With as many threads as there are CPUs one of 64 clients had 0.17
 * of its share still, with half as many 0.97 (H100, 16 CPUs). */
#define CPUS_PER_SLOT 2u
#define SLOTS_MIN 2u

void launch_slots_init(struct device *device)
{
    unsigned slots = cpus_available() / CPUS_PER_SLOT;

    fair_semaphore_init(&device->launch->slots, slots > SLOTS_MIN ? slots : SLOTS_MIN);
}

/* A hint that orders nothing: relaxed. Partner launch_slot_take(). */
void server_launch_set_crowded(struct server *server, bool crowded)
{
    for (unsigned i = 0; i < devices_context_count(&server->devices); i++)
        atomic_store_explicit(&server->devices.device[i].launch->crowded, crowded,
                              memory_order_relaxed);
}

/* Partner server_launch_set_crowded(). */
bool launch_slot_take(const struct device *device)
{
    if (!atomic_load_explicit(&device->launch->crowded, memory_order_relaxed))
        return false;
    fair_semaphore_take(&device->launch->slots);
    return true;
}

void launch_slot_give(const struct device *device, bool taken)
{
    if (taken)
        fair_semaphore_give(&device->launch->slots);
}
