/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared copy stream: where many clients copy, one stream of the device copies the chunks of
 * all. The GPU takes some microseconds to change channels between copies of different streams;
 * copies of one stream follow each other without a gap. A client's own stream waits for its copies.
 */
#pragma once

#include "device.h"
#include "stream.h"

/* Creates the stream. Without it each client's copies use its own streams. */
void shared_copy_stream_open(struct device *device);

/* Whether a copy may use the shared stream in place of this one. This stream and the client's other
 * streams of the device must be idle, or wait only for the shared stream. The session's work must
 * not be timed, because events around it are in the client's own stream. Called before
 * stream_begin_brief(), by the session's thread. */
bool shared_copy_stream_usable(const struct stream *stream);

/* Copies in the shared stream, and lets `stream` wait for it. The ranges are checked, and the
 * device's context is current. Returns the driver's result. */
CUresult shared_copy_stream_copy(struct stream *stream, CUdeviceptr dst, CUdeviceptr src,
                                 uint64_t size);
