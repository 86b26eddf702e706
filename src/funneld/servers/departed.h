/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that have left a server and are not with the next one yet. A client that moves to another
 * device is there for a moment. One whose server has died stays there until its next call. Their
 * records have ended, and what the next one takes over is kept here.
 */
#pragma once

#include <stdbool.h>

#include "client_record.h"

struct daemon;

/* Of a user, far more than move at a time. With so many the one that left first is forgotten. */
#define DEPARTED_MAX 256u

struct departed {
    struct list link;
    char service[SERVER_NAME_MAX];
    bool has_arrived;            /* but not all servers may have answered since */
    uint64_t awaited_until;      /* clock_ns(): it is on its way; 0 = it comes when it likes */
    struct client_record record; /* as it ended, without its server */
};

void departed_fini(struct daemon *daemon);

/* The client's record ends. Nothing is kept of a client that the next server would take in the same
 * way without it. */
void departed_enter(const struct client_record *record);

/* The client of that token that has left the service; or NULL. */
const struct client_record *departed_find(const struct daemon *daemon, const char *service,
                                          const uint8_t token[HELLO_TOKEN_SIZE]);

/* The client of that token is with its next server. Commands look for it there for some seconds:
 * the answers of servers to one question are of different times. */
void departed_arrive(struct daemon *daemon, const uint8_t token[HELLO_TOKEN_SIZE]);

/* A client that is on its way to its next server, or has just arrived; or NULL. It is called by
 * that number (client_record_is_called()). */
const struct client_record *departed_awaited(const struct daemon *daemon, pid_t number);
