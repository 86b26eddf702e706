/* SPDX-License-Identifier: Apache-2.0 */
/* See switch.h. */
#include "switch.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, OFF, ON };

bool switch_is_on(const char *name)
{
    const char *value = getenv(name);

    return value && *value && strcmp(value, "0") != 0;
}

bool switch_is_on_once(int *known, const char *name)
{
    int state = __atomic_load_n(known, __ATOMIC_RELAXED);

    if (state == UNKNOWN) {
        state = switch_is_on(name) ? ON : OFF;
        __atomic_store_n(known, state, __ATOMIC_RELAXED);
    }
    return state == ON;
}
