/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output for a client whose region has no space for it yet, so that the thread that adds output
 * never waits for the client. The owner's lock guards it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "channel.h"

/* Bytes that each client has of its own; that one has at most, several times the buffer that a
 * driver keeps for one context; and of all that have more than their own. */
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

/* False beyond the limits, or when out of memory; then nothing of this output is kept. */
bool backlog_add(struct backlog *backlog, const char *text, size_t size);

/* Writes to the client's region as much as there is space for. */
void backlog_deliver(struct backlog *backlog, struct channel_server *channel,
                     enum region_output kind);

/* Frees the output that is left. */
void backlog_drop(struct backlog *backlog);
