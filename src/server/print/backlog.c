/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer that grows, and is freed when it is empty; see backlog.h. */
#include "backlog.h"

#include "channel_server.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The capacity of all buffers beyond each client's own part. Atomic, because each buffer has
 * another lock. */
static atomic_size_t shared;

static size_t shared_of(size_t capacity)
{
    return capacity > BACKLOG_OWN ? capacity : 0;
}

static void count_capacity(size_t before, size_t after)
{
    atomic_fetch_add_explicit(&shared, shared_of(after) - shared_of(before), memory_order_relaxed);
}

static bool take_capacity(size_t before, size_t after)
{
    count_capacity(before, after);
    if (after <= BACKLOG_OWN ||
        (after <= BACKLOG_MAX &&
         atomic_load_explicit(&shared, memory_order_relaxed) <= BACKLOGS_SHARED))
        return true;
    count_capacity(after, before);
    return false;
}

static bool grow_backlog(struct backlog *backlog, size_t capacity)
{
    char *text;

    if (!take_capacity(backlog->capacity, capacity))
        return false;
    text = realloc(backlog->text, capacity);
    if (!text) {
        count_capacity(capacity, backlog->capacity);
        return false;
    }
    backlog->text = text;
    backlog->capacity = capacity;
    return true;
}

static bool reserve_space(struct backlog *backlog, size_t size)
{
    size_t capacity = backlog->capacity ? backlog->capacity : BACKLOG_OWN;

    while (capacity < backlog->size + size)
        capacity *= 2;
    return capacity == backlog->capacity || grow_backlog(backlog, capacity);
}

bool backlog_add(struct backlog *backlog, const char *text, size_t size)
{
    if (!reserve_space(backlog, size))
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
    count_capacity(backlog->capacity, 0);
    free(backlog->text);
    *backlog = (struct backlog){0};
}
