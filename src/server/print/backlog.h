/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for a client that has no room for it yet. Whoever puts text in never waits for the client.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "channel.h"

struct backlog {
    char *text;
    size_t start, size, capacity; /* text[start .. size) is still to go */
};

static inline bool backlog_empty(const struct backlog *backlog)
{
    return backlog->start == backlog->size;
}

/* False when there is too much of it, or no memory; then nothing is kept of this piece. */
bool backlog_add(struct backlog *backlog, const char *text, size_t size);

/* Hands over what the client has room for. */
void backlog_deliver(struct backlog *backlog, struct channel_server *channel,
                     enum region_output kind);

void backlog_drop(struct backlog *backlog);
