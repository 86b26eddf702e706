/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server for metrics and the status page: GET, HEAD and POST, one request a
 * connection.
 *
 * Every process that reaches the port may connect, so a connection has limits: 8 KiB of request, no
 * body, ten seconds for all of it. The machine itself has 48 connections, and all others have 48:
 * one more takes the place of the oldest that is not being answered. Of requests without the token
 * 16 of each are answered at a time. Nothing of a request is used but its path, its query and three
 * headers.
 *
 * libevent's evhttp has none of these limits. Up to 2.1 it bounds neither the connections nor the
 * time of a whole request. It accepts a second Host header, and cannot give a peer's place to
 * another peer.
 */
#pragma once

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdbool.h>

struct http_server;

/* A request that has been read, until it is answered. The texts live as long as it does. */
struct http_request {
    bool is_post;
    bool is_head;           /* a GET that is answered without its body */
    char path[128];         /* as it came, without the query */
    char query[256];        /* what follows the ?, "" = nothing */
    char token[80];         /* "Authorization: Bearer TOKEN", "" = none */
    bool is_operator;       /* the token fits */
    char host[256];         /* the Host header, "" = none */
    bool takes_openmetrics; /* the Accept header names it */
    void *context;          /* of http_server_start() */
};

typedef void http_handler(struct http_request *request);

/* Listens at "ADDRESS:PORT", ":PORT" or "PORT" (of 127.0.0.1), "[ADDRESS]:PORT" for IPv6, or a path
 * of a Unix socket, which only the daemon's user may use. `handle` is called for each request, and
 * has to answer it, at once or later. 0; -EINVAL for such an address; -errno. */
int http_server_start(struct event_base *base, const char *address, http_handler *handle,
                      void *context, struct http_server **ret_server);

/* The listening socket stays the server's. Stops or goes on accepting. Whether it has connections.
 */
int http_server_socket(const struct http_server *server);
void http_server_listen(struct http_server *server, bool on);
bool http_server_is_busy(const struct http_server *server);

/* Closes all connections; requests that are not answered yet may still be. NULL is allowed. */
void http_server_stop(struct http_server *server);

/* Answers and frees the request. The bytes are taken out of `body`, which may be NULL. */
void http_answer(struct http_request *request, int status, const char *type, struct evbuffer *body);
