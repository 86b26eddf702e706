/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of programs and of front ends to the daemon, and to no other user's process. */
#pragma once

/* The pipe directory is in a place that all users may write to, so another user can listen there
 * first. A daemon serves its own user's programs, and root's daemon serves all. So the listener has
 * to be root, the program's own user, or the user that FUNNEL_DAEMON_UID names.
 *
 * As sock_connect(); -EPERM for any other listener, to which nothing has been said then. */
int daemon_connect_trusted(const char *path, int *ret_fd);
