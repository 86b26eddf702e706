/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the kernels of clients that are gone. Only the software GPU can do that. With another driver
 * the server waits for the kernels (session_end.c).
 */
#pragma once

#include "session.h"

/* Whether the kernels of all sessions have one heap for malloc, as with NVIDIA's driver. What they
 * have not freed is free again when the context ends. */
bool abort_launches_share_heap(void);

/* The session's thread, before it serves: assigns its launches to the session. */
void abort_launches_own(const struct session *session);

/* The session's thread, when all of the session's work has ended and been released. */
void abort_launches_disown(const struct session *session);

/* The watchdog, in each round: ends the kernels of all sessions that should have ended a second
 * ago. A thread of such a session may wait in the driver for a kernel. */
void abort_launches_of_the_gone(struct server *server);
