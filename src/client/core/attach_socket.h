/* SPDX-License-Identifier: Apache-2.0 */
/* The socket by which the client is attached. A program may close descriptors that are not its own.
 */
#pragma once

#include "client.h"

/* The client has this one from now on. */
void attach_note_socket(struct client *made, int socket);

/* Whether the program has left our descriptors open. Only the socket is checked, in place of all of
 * them. */
bool attach_is_whole(void);
