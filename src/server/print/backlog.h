/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers output that does not fit into the client's region yet, so that the writer never waits for
 * the client. The owner's lock guards it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "channel.h"

/* Bytes of each client's own part; of one client at most, several times a context's printf buffer;
 * and of all clients beyond their own parts. */
#define BACKLOG_OWN ((size_t)64 << 10)
#define BACKLOG_MAX ((size_t)64 << 20)
#define BACKLOGS_SHARED ((size_t)256 << 20)

struct backlog {
    char *text;
    size_t start, size, capacity; /* text[start .. size) is not delivered yet */
};

/* Whether all output has been delivered. */
static inline bool backlog_empty(const struct backlog *backlog)
{
    return backlog->start == backlog->size;
}

/* False beyond the limits, or when out of memory; then none of this output is kept. */
bool backlog_add(struct backlog *backlog, const char *text, size_t size);

/* Writes as much output as fits to the client's region. */
void backlog_deliver(struct backlog *backlog, struct channel_server *channel,
                     enum region_output kind);

/* Frees the output that is left. */
void backlog_drop(struct backlog *backlog);
