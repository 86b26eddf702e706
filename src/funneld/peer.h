/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the daemon on its event loop: whole messages come in through a handler, and go
 * out through a queue, so that nobody who does not read can make the daemon wait.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "list.h"

struct peer_handlers {
    void (*message)(void *owner, const void *data, size_t size);
    /* The other end is gone, or sent what it may not. Called once; the owner closes the peer. */
    void (*closed)(void *owner);
};

struct peer {
    int fd;
    struct event *readable;
    struct event *writable;
    struct list outbox;
    size_t queued; /* bytes in the outbox */
    const struct peer_handlers *handlers;
    void *owner;
    bool *gone; /* set while messages are handled: the handler may close the peer */
    bool broken;
};

/* Takes `fd`, also when it fails: 0 or -ENOMEM. */
int peer_open(struct peer *peer, struct event_base *base, int fd,
              const struct peer_handlers *handlers, void *owner);

/* Closes it; what is still in the queue is lost. May be called for a peer that is closed. */
void peer_close(struct peer *peer);

/* Leaves the loop, but not the connection: returns the descriptor, which is the caller's now. */
int peer_release(struct peer *peer);

/* Stops or goes on reading. */
void peer_listen(struct peer *peer, bool on);

/* Sends or queues one message. Takes `fd` (-1 = none) in any case. 0; -ENOBUFS when the other end
 * has not read for too long; -EPIPE. After an error `closed` is called from the loop. */
int peer_send(struct peer *peer, const void *data, size_t size, int fd);

/* Handles what has come in so far, without waiting. */
void peer_drain(struct peer *peer);
