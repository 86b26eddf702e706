/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections from accept() to their place: a front end becomes a console; a program is handed to
 * the server of its user, waits while that one starts, or is turned away with a sentence.
 */
#pragma once

#include <sys/types.h>

#include "daemon.h"

struct server;
struct mps_namespace;

/* Accepts whoever waits at the listening socket, which belongs to `entrance`, or to the daemon if
 * that is NULL. */
void newcomer_accept(struct daemon *daemon, int listen_fd, struct mps_namespace *entrance);

/* The server is ready: it gets all programs that wait for it. */
void newcomer_server_ready(struct server *server);

/* Turns those away who wait for the server of that name. */
void newcomer_refuse_waiting(struct daemon *daemon, const char *name, int status, const char *text);

/* The server of that name has gone: if programs wait, another one is started. */
void newcomer_server_gone(struct daemon *daemon, const char *name);

/* Turns those away who came in there. */
void newcomer_close_entrance(struct daemon *daemon, const struct mps_namespace *entrance);

/* How many programs wait for a server. */
unsigned newcomer_count_waiting(const struct daemon *daemon);

void newcomer_close_all(struct daemon *daemon);
