/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the kernels of clients that are gone, where the driver can do that: the software GPU. With
 * another driver nothing happens, and the server waits for them (session_end.c).
 */
#pragma once

#include "session.h"

/* The session's thread, before it serves: its launches belong to the session. */
void abort_launches_own(const struct session *session);

/* The session's thread, when all of the session's work has ended and been released. */
void abort_launches_disown(const struct session *session);

/* The watchdog, in each round: ends the kernels of all sessions that should have ended a second
 * ago. Their threads may be waiting in a call of the driver for one of those kernels. */
void abort_launches_of_the_gone(struct server *server);
