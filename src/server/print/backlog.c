/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer that grows, and is freed when it is empty; see backlog.h. */
#include "backlog.h"

#include <stdlib.h>
#include <string.h>

/* Several times the buffer that a driver keeps for one context. */
#define BACKLOG_MAX ((size_t)64 << 20)

static bool make_room(struct backlog *backlog, size_t size)
{
    size_t capacity = backlog->capacity ? backlog->capacity : 1u << 16;

    while (capacity < backlog->size + size)
        capacity *= 2;
    if (capacity == backlog->capacity)
        return true;
    char *text = capacity <= BACKLOG_MAX ? realloc(backlog->text, capacity) : NULL;
    if (!text)
        return false;
    backlog->text = text;
    backlog->capacity = capacity;
    return true;
}

bool backlog_add(struct backlog *backlog, const char *text, size_t size)
{
    if (!make_room(backlog, size))
        return false;
    memcpy(backlog->text + backlog->size, text, size);
    backlog->size += size;
    return true;
}

void backlog_deliver(struct backlog *backlog, struct channel_server *channel,
                     enum region_output kind)
{
    if (backlog_empty(backlog))
        return;
    backlog->start += channel_server_put_output(channel, kind, backlog->text + backlog->start,
                                                backlog->size - backlog->start);
    if (backlog_empty(backlog))
        backlog_drop(backlog);
}

void backlog_drop(struct backlog *backlog)
{
    free(backlog->text);
    *backlog = (struct backlog){0};
}
