/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait for the client: for a callback, or for a value that the client writes.
 *
 * A client that is gone will not write, so all that its streams may wait for is recorded here, and
 * written when the session ends. And because the GPU has only so many queues, which all clients
 * share, one client may have only some streams that wait.
 *
 * All of it is the session thread's.
 */
#pragma once

#include "session.h"

/* Whether a stream waits for a word in [address, address + size): a memory_guard. */
bool host_waits_in(struct session *session, uint64_t address, uint64_t size);

/* Writes what the streams of the session wait for. Called again until all of them are idle. Returns
 * whether a wait was over since the last call, so that the next may be soon. */
bool host_waits_release_all(struct session *session);

/* Frees the records of the waits. */
void host_waits_forget_all(struct session *session);
