/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells about the process at the other end of a connection. */
#pragma once

#include "server_protocol.h"

/* Fills in the command line, the PID namespace and the group. `identity` holds the process, user
 * and group id that the socket has told. The command line and the group are what `hello` says.
 * Waits for nothing. */
void peer_identity_complete(struct server_identity *identity, const struct hello *hello);
