/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All streams of a context at once: their work in an event, and an event that all of their later
 * work waits for. Any thread; the locks of the client and of the channel are not held.
 */
#pragma once

#include "client_stream.h"

/* Records all that is on the context's streams now; of a primary context those of its green ones,
 * too. CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED when one captures, whose
 * capture is invalid then, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult stream_record_context(struct context *context, CUevent event);

/* Lets all later work on those streams, and on streams that are made later, wait for an event. The
 * same errors. */
CUresult stream_hold_context(struct context *context, CUevent event);

/* A stream is new in a context with a barrier. */
void stream_join_later(struct stream *stream);

/* The context ends. */
void stream_join_end(struct context *context);
