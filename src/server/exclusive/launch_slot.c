/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_slot.h. */
#include "launch_slot.h"

#include <stdlib.h>

#include "cpus.h"

/* The clients want CPUs as well. With as many threads as there are CPUs one of 64 clients had 0.17
 * of its share still, with half as many 0.97 (H100, 16 CPUs). */
#define CPUS_PER_SLOT 2u
#define SLOTS_MIN 2u

struct launch_slots *launch_slots_create(void)
{
    struct launch_slots *slots = calloc(1, sizeof(*slots));
    unsigned count = cpus_available() / CPUS_PER_SLOT;

    if (slots)
        fair_semaphore_init(&slots->semaphore, count > SLOTS_MIN ? count : SLOTS_MIN);
    return slots;
}

void launch_slots_destroy(struct launch_slots *slots)
{
    free(slots);
}

/* Partner: launch_slot_take(). */
void launch_slots_limit(struct server *server, bool limited)
{
    for (unsigned i = 0; i < devices_context_count(&server->devices); i++)
        atomic_store_explicit(&server->devices.device[i].slots->limited, limited,
                              memory_order_relaxed);
}
