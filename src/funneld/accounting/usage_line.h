/* SPDX-License-Identifier: Apache-2.0 */
/* A line of usage.jsonl: one client that has ended, or several of one user added up. */
#pragma once

#include <event2/buffer.h>

#include "server_protocol.h"

struct usage_line {
    const char *server;
    const struct server_ready *ready; /* its devices */
    const struct server_identity *who;
    const struct server_client_gone *gone;
    int64_t ended;            /* wall clock, seconds */
    unsigned clients, failed; /* so many together; and of them ended by an error */
};

/* Appends it as JSON, with its newline. Of several clients only the user and the server, if it is
 * one, are told. */
void usage_line_add(struct evbuffer *out, const struct usage_line *line);
