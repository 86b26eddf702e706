/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections from accept() until they have been placed. A front end becomes a console. A program
 * is handed over to the server of its user, waits while that server starts, or is refused with a
 * message.
 */
#pragma once

#include <sys/types.h>

#include "daemon.h"

/* Accepts the connections that wait at the listening socket, which belongs to `space`, or to the
 * daemon if that is NULL. */
void pending_client_accept(struct daemon *daemon, int listen_fd, struct mps_namespace *space);

/* Accepts connections again after a pause for which there were no descriptors: a timer's callback.
 */
void pending_client_end_pause(evutil_socket_t fd, short what, void *daemon);

/* The server is ready: it gets all programs that wait for it. */
void pending_client_server_ready(struct server_process *server);

/* The server of that name could not be started. Programs that wait for it go to another one
 * (client_routes.h), or are refused. */
void pending_client_refuse_waiting(struct daemon *daemon, const char *name, int status,
                                   const char *text);

/* The server of that name is gone: if programs wait for it, another one is started. */
void pending_client_server_gone(struct daemon *daemon, const char *name);

/* Refuses the programs that connected to that namespace. */
void pending_client_close_namespace(struct daemon *daemon, const struct mps_namespace *space);

/* Leaves all of them to the program that the daemon becomes (inherited.h): 0 or -errno. */
int pending_clients_leave(const struct daemon *daemon, struct list *left);

/* Goes on with one in that program; `size` is 0 where it has not said hello yet. Takes `fd`. */
void pending_client_inherit(struct daemon *daemon, int fd, struct mps_namespace *space,
                            const void *hello, size_t size);

void pending_client_close_all(struct daemon *daemon);
