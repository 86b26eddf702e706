/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait for the client itself: for a callback of its, or for a value that it writes.
 *
 * A client that is gone will not write, so all that its streams could wait for is written down
 * here, and let go when the session ends. And as the GPU has only so many queues, which all clients
 * share, one client may hold only some of them at a time.
 */
#pragma once

#include "session.h"

/* Whether a stream of the client has ever waited for the client or for a word. */
bool host_waits_exist(const struct session *session);

/* Writes what every held stream of the session waits for. Called until all of them are idle. */
void host_waits_release_all(struct session *session);

/* Forgets the waits. */
void host_waits_forget_all(struct session *session);
