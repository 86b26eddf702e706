/* SPDX-License-Identifier: Apache-2.0 */
/* See switch.h. */
#include "switch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, OFF, ON };

bool switch_is_on(const char *name)
{
    const char *value = getenv(name);

    return value && *value && strcmp(value, "0") != 0;
}

bool switch_is_on_once(_Atomic int *known, const char *name)
{
    int state = atomic_load_explicit(known, memory_order_relaxed);

    if (state == UNKNOWN) {
        state = switch_is_on(name) ? ON : OFF;
        atomic_store_explicit(known, state, memory_order_relaxed);
    }
    return state == ON;
}
