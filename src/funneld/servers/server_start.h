/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a server process, and whether there may be another one. */
#pragma once

#include "server_process.h"

/* Starts one: 0 with the server in the list, or -errno. -EUSERS when there are as many as there may
 * be, and all have clients; -EDQUOT, the same of its user. -EAGAIN when its user's servers have
 * started too often. */
int server_process_start(struct daemon *daemon, const struct server_route *route,
                         struct server_process **ret_server);

/* Starts a server like this one, to stand by for it or to serve in its place. In the second case
 * this one has left it. Returns 0 with the other one in the list, or errors of
 * server_process_start(). */
int server_process_start_another(const struct server_process *server, enum server_role role,
                                 struct server_process **ret_another);

/* Such an error in words. */
const char *server_process_start_error(int error);
