/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program may give its data to the process that listens at a socket. */
#pragma once

#include <stdbool.h>

/* The pipe directory is in a place that all users may write to, so anybody can listen there first.
 * A daemon serves its own user's programs, and root's serves all: so the listener has to be root,
 * the program's own user, or the user that FUNNEL_DAEMON_UID names. */
bool daemon_is_trusted(int socket);
