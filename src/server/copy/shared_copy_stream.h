/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lane: one stream of a device in which the pieces of all clients go up, where many copy. The
 * GPU changes channels between copies of different streams, for some microseconds each; those of
 * one stream follow each other without a gap. A client's own stream waits for what went up for it.
 */
#pragma once

#include "device.h"
#include "stream.h"

/* Makes the stream. Without it all go up in streams of their own. */
void shared_copy_stream_open(struct device *device);

/* Whether a copy may go up in the lane as if it were in this stream: it and the client's other
 * streams of the device are at rest, or have only waited for the lane since. To be asked before
 * stream_begin(). */
bool shared_copy_stream_usable(const struct stream *stream);

/* Copies in the lane, and has the stream wait for it. All is checked. */
CUresult shared_copy_stream_copy(struct stream *stream, CUdeviceptr dst, CUdeviceptr src,
                                 uint64_t size);
