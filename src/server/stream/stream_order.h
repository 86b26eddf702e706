/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order that CUDA promises between the legacy default stream and the others.
 *
 * Work on the legacy stream begins when all earlier work on the client's blocking streams is done.
 * Work on a blocking stream begins when all earlier work on the legacy stream is done. Every stream
 * counts its work. A stream that is to follow another one waits for an event behind the other's
 * work, unless it has waited for that much already. A client with one stream pays nothing.
 *
 * Functions are the session thread's, in the stream's context, and return what the driver says.
 */
#pragma once

#include "stream.h"

/* What the stream is given from now on begins behind the streams that it has to follow. */
CUresult stream_order_begin(struct stream *stream);

/* The blocking stream is about to end: the legacy stream of its share follows it up to here. */
CUresult stream_order_end(struct stream *stream);

/* Records the stream's event behind all that it was given. */
CUresult stream_order_record(struct stream *stream);
