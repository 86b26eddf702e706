/* SPDX-License-Identifier: Apache-2.0 */
/* See context_ids.h. */
#include "context_ids.h"

bool context_ids_have(const struct context_ids *ids, uint32_t id)
{
    for (unsigned i = 0; i < ids->count; i++)
        if (ids->each[i] == id)
            return true;
    return false;
}

bool context_ids_add(struct context_ids *ids, uint32_t id)
{
    if (ids->count == CONTEXT_IDS_MAX)
        return false;
    ids->each[ids->count++] = id;
    return true;
}

void context_ids_remove(struct context_ids *ids, uint32_t id)
{
    for (unsigned i = 0; i < ids->count; i++)
        if (ids->each[i] == id)
            ids->each[i--] = ids->each[--ids->count];
}
