/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that is not placed yet. Only pending_client.c and pending_program.c include this.
 */
#pragma once

#include "client_routes.h"
#include "connection.h"
#include "peer_identity.h"
#include "peer_program.h"
#include "pending_client.h"

struct pending_client {
    struct list link;
    struct daemon *daemon;
    struct connection connection;
    struct event *deadline;
    struct server_identity identity;
    struct client_program program;
    struct hello hello;
    struct mps_namespace *space; /* NULL = the daemon's own socket, and no namespace */
    bool delayed;                /* it has said hello, and its user has come too often */
    bool waiting;                /* it has said hello, and waits for the server of this route */
    uint64_t emptying_since;     /* clock_ns() since when it waits for the last client; 0 = not */
    struct client_routes routes;
    char *groups; /* control groups of the process; NULL = not read */
};

void pending_client_free(struct pending_client *client);

/* Refuses it with a message, and frees it. */
__attribute__((format(printf, 3, 4))) void
pending_client_refuse(struct pending_client *client, int status, const char *format, ...);

/* What it waits for must come within this time. */
void pending_client_set_deadline(struct pending_client *client, int seconds);
