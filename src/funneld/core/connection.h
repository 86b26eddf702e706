/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the daemon on its event loop. Whole messages come in through a handler, and go
 * out through a queue. So a peer that does not read cannot make the daemon wait.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "list.h"

struct connection_handlers {
    void (*message)(void *owner, const void *data, size_t size);
    /* The other end is gone, or has sent something invalid. Called once; the owner closes the
     * connection. */
    void (*closed)(void *owner);
};

struct connection {
    int fd;
    struct event *readable;
    struct event *writable;
    struct list outbox;
    size_t queued; /* bytes in the outbox */
    unsigned queued_fds;
    const struct connection_handlers *handlers;
    void *owner;
    pid_t sender; /* set by the owner of a socket that asks for senders (sock.h): other processes'
                     messages are ignored; 0 = none are */
    bool has_impostor; /* another process has sent one */
    bool takes_files;  /* set by the owner: a message may come with a descriptor */
    int *file;  /* that of the message in hand, -1 = none, for its handler to take; NULL outside */
    bool *gone; /* set while messages are handled: the handler may close the connection */
    bool broken;
};

/* Takes `fd`, also when it fails: 0 or -ENOMEM. */
int connection_open(struct connection *connection, struct event_base *base, int fd,
                    const struct connection_handlers *handlers, void *owner);

/* Closes it; what is still in the queue is lost. May be called for a connection that is closed. */
void connection_close(struct connection *connection);

/* Leaves the loop, but not the connection: returns the descriptor, which is the caller's now. */
int connection_release(struct connection *connection);

/* Stops or goes on reading. */
void connection_listen(struct connection *connection, bool on);

/* Sends or queues one message. Takes `fd` (-1 = none) in any case. 0; -ENOBUFS when the other end
 * has not read for too long; -EPIPE. After an error `closed` is called from the loop. */
int connection_send(struct connection *connection, const void *data, size_t size, int fd);

/* Handles what has come in so far, without waiting. */
void connection_drain(struct connection *connection);
