/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections from accept() to their place: a front end becomes a console; a program is handed to
 * the server of its user, waits while that one starts, or is turned away with a sentence.
 */
#pragma once

#include <sys/types.h>

#include "daemon.h"

struct server;

/* Accepts whoever waits at the listening socket. */
void newcomer_accept(struct daemon *daemon);

/* The server is ready: it gets all programs that wait for it. */
void newcomer_server_ready(struct server *server);

/* Turns those away who wait for a server of `uid`. */
void newcomer_refuse_waiting(struct daemon *daemon, uid_t uid, int status, const char *text);

/* A server of `uid` has gone: if programs wait, another one is started. */
void newcomer_server_gone(struct daemon *daemon, uid_t uid);

/* How many programs wait for a server. */
unsigned newcomer_count_waiting(const struct daemon *daemon);

void newcomer_close_all(struct daemon *daemon);
