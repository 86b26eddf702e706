/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_slot.h. */
#include "launch_slot.h"

#include "launch_state.h"

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
