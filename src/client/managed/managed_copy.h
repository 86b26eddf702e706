/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of managed variables, up to the device and down. */
#pragma once

#include "managed_variable.h"

void managed_copy_init(void);

/* Makes sure that there is a stream to copy on. */
CUresult managed_copy_prepare(struct device *device);

/* Takes over what the server's copy contains: also as the program's, if that has not seen it.
 * Waits for the device. */
CUresult managed_fetch(struct managed_variable *variable, bool fresh);

/* Waits for what was sent: nothing reads the page-locked copies any more. */
void managed_copy_settle(void);

/* Work that comes from now on waits for what was sent on the stream of the library. */
void managed_sent_locked(void);

/* What is sent on the stream of the library waits for what was sent on one of the program's. */
void managed_follow_locked(void);

/* What is put on the stream waits for all that was sent. */
void managed_follow_on_locked(struct stream *stream);

/* The stream on which to send what work on `stream` will use; NULL = work on any. Before it, with
 * the channel lock. */
struct stream *managed_stream_for_locked(struct stream *stream);

/* A fence behind what was sent; or one on another stream, whose number has been issued. */
struct fence managed_send_fence_locked(void);
void managed_fence_on_locked(const struct stream *stream, uint32_t seq);

/* Waits without writing device printf output, as the program may be inside stdio. Returns the error
 * when the fence will never pass. */
CUresult managed_wait_quietly(struct fence fence);

/* The hooks of managed_hooks.h. */
void managed_copy_push(struct stream *stream);
void managed_copy_count_work(void);
void managed_copy_pull(void);
