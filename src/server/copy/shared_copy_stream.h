/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared copy stream: one stream of a device in which the chunks of all clients are copied,
 * where many copy. The GPU changes channels between copies of different streams, which takes some
 * microseconds each; those of one stream follow each other without a gap. A client's own stream
 * waits for what was copied for it.
 */
#pragma once

#include "device.h"
#include "stream.h"

/* Creates the stream. Without it each client's copies use its own streams. */
void shared_copy_stream_open(struct device *device);

/* Whether a copy may use the shared stream as if it were in this one: this stream and the client's
 * other streams of the device are idle, or have only waited for the shared one since. Called before
 * stream_begin(), by the session's thread. */
bool shared_copy_stream_usable(const struct stream *stream);

/* Copies in the shared stream, and has `stream` wait for it. The ranges have been checked, and the
 * device's context is current. What the driver says. */
CUresult shared_copy_stream_copy(struct stream *stream, CUdeviceptr dst, CUdeviceptr src,
                                 uint64_t size);
