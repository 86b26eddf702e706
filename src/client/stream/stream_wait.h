/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for streams, contexts and devices. */
#pragma once

#include "client_stream.h"

/* Waits for all work of the stream, and reports its error. The caller holds no lock. */
CUresult stream_synchronize(struct stream *stream);

/* The same for every stream of a context, the legacy one included. */
CUresult stream_synchronize_context(struct context *context);

/* A number that changes when the program has synchronized with a stream, an event or a context. */
void stream_count_wait(void);
uint64_t stream_waits(void);

/* Waits until nothing of this client runs on the device, if anything does. */
CUresult stream_drain_device(struct device *device);

/* The same for all devices. */
CUresult stream_drain_all(void);
