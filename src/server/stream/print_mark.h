/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to where a stream has to come until its kernels that may print are done. The fence behind them
 * tells, as a rule. Where none has come yet, an event is recorded when a client has to know; and
 * before the stream waits for something that its client does, since the client may wait for another
 * client's turn to print by then.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"

struct session;
struct stream;

struct print_mark {
    atomic_uint_fast64_t place; /* where it is, and the number of the fence: print_mark.c */
    CUevent event;              /* under the lock of the session's streams; NULL at first */
};

/* Session thread: kernels that may print are about to be put into the stream. */
void print_mark_open(struct stream *stream);

/* Session thread: a fence is about to be put behind all that the stream has. */
void print_mark_fence(struct stream *stream, uint32_t seq);

/* Session thread, in the stream's context: the stream is about to wait for what its client does. */
void print_mark_before_wait(struct stream *stream);

/* From any thread, in the stream's context: the stream is about to be freed. */
void print_mark_end(struct stream *stream);

/* From any thread, with the lock of the session's streams, in the stream's context: whether those
 * kernels are done. With `record` an event is recorded where nothing tells that. */
bool print_mark_is_reached_locked(struct stream *stream, bool record);

/* From any thread, in the device's context: the same of all the client's streams there, those that
 * it has ended as well. Takes the lock of its streams. */
bool print_marks_are_reached(const struct session *session, const struct device *device,
                             bool record);
