/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_handles.h. */
#include "graph_handles.h"

#include "handles.h"

static struct handles objects;

uint64_t graph_handle_add(enum graph_handle_type type, void *object)
{
    if (!objects.chunks && handles_init(&objects, HANDLE_INDEX_MAX))
        return 0;
    return handles_add(&objects, type, object);
}

void *graph_handle_get(enum graph_handle_type type, const void *handle)
{
    return objects.chunks ? handles_get(&objects, type, (uintptr_t)handle) : NULL;
}

void graph_handle_remove(enum graph_handle_type type, uint64_t handle)
{
    if (handle)
        handles_remove(&objects, type, handle);
}
