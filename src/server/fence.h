/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: numbers that the GPU writes into shared memory behind a stream's work. Waiting for them
 * is the client's business and needs no word of the server, unless it wants to sleep.
 */
#pragma once

#include "stream.h"

/* Notes work that has no fence behind it yet. */
void fence_expect_work(struct stream *stream);

/* From any thread: may a stream with this word have work on the GPU that has not come to its end?
 */
bool fence_pending(const struct session *session, uint32_t word);

/* The same of all its streams: may the client have work on the GPU that has not come to its end? */
bool fence_any_pending(const struct session *session);

/* What the word holds now. */
uint32_t fence_value(const struct window *window, uint32_t word);

/* Notes that `seq` is to be written behind all that was put into the stream so far. */
void fence_expect(struct stream *stream, uint32_t seq);

/* Lets the GPU write `seq` to the stream's word behind all that was put into the stream. */
CUresult fence_write(struct stream *stream, uint32_t seq);

/* Has the GPU written `seq` or a later number? Numbers wrap around. */
bool fence_reached(const struct stream *stream, uint32_t seq);
