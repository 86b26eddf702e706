/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences behind copies, written by a copy engine. For cuStreamWriteValue32 the GPU's front end
 * waits until all that was written has arrived, 4 us on an H200, and it does that for one stream
 * after the other: where many clients copy, they wait for that more than for each other. A copy of
 * two bytes, from a table of all numbers, delays no other client, and needs no space among the
 * kernels. For a single client such a fence comes later, so the client asks for it (fnCopyUp).
 */
#pragma once

#include "device.h"
#include "stream.h"

/* Creates the table. A device without it goes on with cuStreamWriteValue32. */
void copy_fence_prepare(struct device *device);

/* Session thread: like fence_write(), in the device's context. */
CUresult copy_fence_write(struct stream *stream, uint32_t seq);
