/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which context of a device a client works. In the primary one the kernels of all clients
 * overlap; in the spare one (device.h) a client need not wait for long kernels of others.
 *
 * The first call that creates something in a context (a stream, an event, a library, an array, a
 * graph) places the client. It stays there. Memory and page locks belong to no context. Without
 * spare contexts every client is in the primary one.
 */
#pragma once

#include "session.h"

/* Session thread. The context in which the client works, or would without being placed. */
const struct device *session_device(const struct session *session, unsigned ordinal);

/* Session thread. The same, and the client stays there from now on. NULL, and an error in the log,
 * when there is no such device. */
const struct device *session_place(struct session *session, const char *call, uint32_t index);

/* Session thread. The context for calls that belong to none. It is the client's if that has been
 * placed, else one in which they wait for no long kernel, if there is one. May take some
 * milliseconds. */
const struct device *session_find_idle_device(struct session *session, unsigned ordinal);

/* Session thread. The client has nothing in a context any more, and is placed anew when it next
 * creates something there. */
void session_unplace(struct session *session);

/* Session thread. The client needs what only the primary context has. False when it has been placed
 * in the spare one before. */
bool session_stay_primary(struct session *session, unsigned ordinal);

/* From any thread: whether the client works in the spare context of a device. */
bool session_is_in_spare(const struct session *session, unsigned ordinal);
