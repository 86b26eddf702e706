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

/* Refuses the programs that connected to that namespace. */
void pending_client_close_namespace(struct daemon *daemon, const struct mps_namespace *space);

/* Leaves all of them to the program that the daemon becomes (inherited.h): 0 or -errno. */
int pending_clients_leave(const struct daemon *daemon, struct list *left);

/* Goes on with one in that program; `size` is 0 where it has not said hello yet. Takes `fd`. */
void pending_client_inherit(struct daemon *daemon, int fd, struct mps_namespace *space,
                            const void *hello, size_t size);

void pending_client_close_all(struct daemon *daemon);
