/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences behind copies, written by a copy engine. For cuStreamWriteValue32 the GPU's front end
 * waits until earlier writes have arrived, 4 us on an H200, for one stream after the other. Where
 * many clients copy, that wait dominates. A copy of two bytes from a table delays no other client,
 * and takes no multiprocessor. For a single client such a fence is slower, so the client requests
 * it (fnCopyUp).
 */
#pragma once

#include "device.h"
#include "stream.h"

/* Creates the table. A device without it goes on with cuStreamWriteValue32. */
void copy_fence_prepare(struct device *device);

/* Session thread: like fence_write(), in the device's context. */
CUresult copy_fence_write(struct stream *stream, uint32_t seq);
