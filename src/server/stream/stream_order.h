/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order that CUDA promises between the legacy default stream and the others.
 *
 * Work on the legacy stream begins when all earlier work on the client's blocking streams is done.
 * Work on a blocking stream begins when all earlier work on the legacy stream is done. Every stream
 * counts its work. A stream that is to follow another one waits for an event behind the other's
 * work, unless it has waited for that much already. A client with one stream pays nothing.
 *
 * Functions are the session thread's.
 */
#pragma once

#include "device.h"

struct stream;

/* Before work that takes no time is put into a stream, such as an event. Makes its context current
 * and orders it behind the streams that it has to follow. CUDA_ERROR_INVALID_HANDLE where the
 * driver refused the stream, or what the driver says. */
CUresult stream_begin_brief(struct stream *stream);

/* The same for work that takes time. It waits while the client is far ahead of the GPU, so the
 * caller holds no lock. */
CUresult stream_begin_work(struct stream *stream);

/* In its context: the stream is about to end, and the legacy stream still has to wait for what it
 * was given. What the driver says. */
CUresult stream_order_end(struct stream *stream);

/* In its context: records the stream's event behind all that it was given. What the driver says. */
CUresult stream_order_record(struct stream *stream);
