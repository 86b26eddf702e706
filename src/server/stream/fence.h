/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: numbers that the GPU writes into shared memory behind a stream's work. Waiting for one is
 * the client's business and needs no call of the server, unless the client's thread wants to sleep.
 * The number of a fence wraps around, and 0 is never one.
 */
#pragma once

#include "stream.h"

/* Session thread: work is being put into the stream that has no fence behind it yet. */
void fence_expect_work(struct stream *stream);

/* Session thread: `seq` is to be written behind all that was put into the stream so far. Partner of
 * both on other threads: fence_pending(). */
void fence_expect(struct stream *stream, uint32_t seq);

/* Session thread: the number that was last expected in the stream's word. */
uint32_t fence_expected(const struct stream *stream);

/* Session thread: has the stream's word written with `seq` behind all that was put into the stream,
 * and expects it. What the driver says; CUDA_ERROR_CONTEXT_IS_DESTROYED for a stream without the
 * driver's after a fault. */
CUresult fence_write(struct stream *stream, uint32_t seq);

/* From any thread: what the stream's word holds now. Partner: the GPU's write, or
 * fence_write_now(). */
uint32_t fence_value(const struct stream *stream);

/* From any thread: writes `seq` by the CPU and wakes the threads that sleep on the word. Partner:
 * the client's loads, and fence_value(). */
void fence_write_now(const struct stream *stream, uint32_t seq);

/* From any thread: whether `seq` or a later number has been written to the stream's word. */
bool fence_word_reached(const struct stream *stream, uint32_t seq);

/* From any thread: whether a stream, or any stream of the client, may have work on the GPU that is
 * not done. */
bool fence_pending(const struct stream *stream);
bool fence_any_pending(const struct session *session);
