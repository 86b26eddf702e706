/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds of the GPU: work of the server's own behind a request of a critical client, which keeps the
 * GPU with this process for a moment. The next request, which is mostly due by then, finds the GPU
 * here. Without a hold the GPU changes to a batch lane after each request and back, 0.4 ms on an
 * H200.
 *
 * Only work keeps the GPU that it has not fetched yet (docs/notes/performance-lanes.md). So a hold
 * is a pause of one thread and some writes of a word behind it, in a stream of the server's own. No
 * work of a client waits for that stream.
 *
 * Brief holds leave a batch lane its time by a budget (hold_budget.h). Where requests follow each
 * other too closely for that (hold_demand.h), holds are lasting: each further request lengthens
 * them. Where these cover nearly all of the time, the daemon gives the batch lane a slice that is
 * its share. Without that holds are brief again.
 */
#pragma once

#include <stdbool.h>

#include "device.h"
#include "server.h"
#include "stream.h"

/* Loads the kernel and locks the word, before there are clients that this could stall. Where the
 * driver refuses, the device has no holds. */
void context_hold_load(struct server *server, struct device *device);

/* Frees what the device keeps for holds. It may never have been loaded. */
void context_hold_unload(struct device *device);

enum hold_kind {
    HOLD_NONE,    /* no batch lane has work beside this server */
    HOLD_BRIEF,   /* one has */
    HOLD_LASTING, /* it also has a slice that is its share */
};

/* From any thread: which holds there may be from now on. */
void context_hold_allow(struct server *server, enum hold_kind kind);

/* From any thread: whether holds may begin behind requests of this client. */
bool context_hold_is_for(const struct session *session);

/* Session thread, in the context of the stream: the client waits for the last fence of the stream.
 * Begins a hold behind it where that helps: the client is critical, and its request is not done
 * yet. Once for each fence. */
void context_hold_behind(struct stream *stream);

/* The main thread, which tells the daemon: whether lasting holds cover nearly all of the time. */
bool context_hold_tell_demand(struct server *server);

/* From any thread: whether the daemon has been told otherwise. */
bool context_hold_demand_is_news(const struct server *server);
