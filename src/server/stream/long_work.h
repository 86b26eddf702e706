/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the streams of a context have work that takes long, so that a call that waits for all of
 * them had better not be made.
 */
#pragma once

#include "calm.h"
#include "server.h"
#include "session.h"

/* On the thread of `session`, whose own streams count like those of other clients: whether a stream
 * of the context is not done after LONG_WORK_NS with what it has now, or a call that waits for all
 * of them takes so long. Takes at most a little longer than twice that time. */
#define LONG_WORK_NS (20 * NS_PER_MS)
bool long_work_exists(struct session *session, const struct device *device);

/* On the thread of `session`: waits until no stream of the context has such work, and holds clients
 * back that always have some. It gives up when the session is to end, and while a stream waits for
 * a value. */
void long_work_await_calm(struct session *session, const struct device *device, struct calm *calm);
