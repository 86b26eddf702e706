/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that a worker of the pool makes by itself. A session's thread makes all others. */
#pragma once

#include "server_dispatch.h"
#include "session.h"

/* Whether the command waits neither for the GPU nor for another client. `size` is that of the
 * message, or the error of the ring. */
bool light_command(const struct session *session, int size, const struct ring_message *message);
