/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to servers that have not been answered yet. Each request has a number that its responses
 * carry, and a time after which they are not waited for any longer. A server whose process is
 * stopped gets none, and is waited for half a second at most.
 */
#pragma once

#include <stdint.h>

#include "server_protocol.h"

struct server_process;

/* How a response arrives. `end` is called exactly once. Its status is what RESULT says, or 0 for
 * STATUS_END. -EPIPE: the server died. -ETIMEDOUT: it did not respond in time, or is stopped. */
struct response_handler {
    void (*row)(void *context, const struct server_status_row *row); /* may be NULL */
    void (*end)(void *context, int status, const struct server_status_end *totals);
    void *context;
};

/* Sends `message`, whose header is filled here, and reports what comes back. */
void pending_request_send(struct server_process *server, void *message, enum server_message kind,
                          int timeout_s, const struct response_handler *handler);

/* The same with a descriptor, which it takes; -1 = none. */
void pending_request_send_file(struct server_process *server, void *message,
                               enum server_message kind, int fd, int timeout_s,
                               const struct response_handler *handler);

/* A response has come, in part or as a whole. One to no request is ignored. */
void pending_request_row(struct server_process *server, const struct server_status_row *message);
void pending_request_answered(struct server_process *server, uint32_t number, int status,
                              const struct server_status_end *totals);

/* The server will not respond any more. */
void pending_requests_end(struct server_process *server);
