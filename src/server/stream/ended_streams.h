/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that their client has destroyed while they had work. CUDA lets that work run to its end,
 * and the client may exit meanwhile. What the work uses must stay until it is done, so the session
 * keeps an event behind it.
 *
 * Functions are the session thread's unless their comment says otherwise.
 */
#pragma once

#include "stream.h"

/* Takes a stream over that is not in the handle table any more, from the list in which it is, in
 * its context. It counts as one of the client's streams until its work is done. */
void ended_streams_take(struct stream *stream);

/* Frees those whose work is done. Returns whether all are. */
bool ended_streams_are_idle(struct session *session);

/* Frees all. Their work is done, or the driver's context is lost. */
void ended_streams_forget_all(struct session *session);
