/* SPDX-License-Identifier: Apache-2.0 */
#include "soft_part.h"

#include <stddef.h>

void parts_context_begins_locked(struct context *context)
{
    for (const struct soft_part *const *part = soft_parts; *part; part++) {
        if ((*part)->context_begins_locked)
            (*part)->context_begins_locked(context);
    }
}

void parts_context_ends_locked(struct context *context)
{
    for (const struct soft_part *const *part = soft_parts; *part; part++) {
        if ((*part)->context_ends_locked)
            (*part)->context_ends_locked(context);
    }
}

void parts_synchronized_locked(const struct device *device)
{
    for (const struct soft_part *const *part = soft_parts; *part; part++) {
        if ((*part)->synchronized_locked)
            (*part)->synchronized_locked(device);
    }
}

void parts_release_locked(const struct device *device)
{
    for (const struct soft_part *const *part = soft_parts; *part; part++) {
        if ((*part)->release_locked)
            (*part)->release_locked(device);
    }
}
