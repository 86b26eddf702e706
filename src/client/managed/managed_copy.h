/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of managed variables, up to the device and down. */
#pragma once

#include "managed_variable.h"

/* Once while attaching, before the other calls here. */
void managed_copy_init(void);

/* Makes sure that there is a stream to copy on. */
CUresult managed_copy_prepare(struct device *device);

/* Takes over the contents of the server's copy: also as the program's, if it has not seen them.
 * Waits for the device. */
CUresult managed_fetch(struct managed_variable *variable, bool fresh);

/* Waits for the copies: nothing reads the page-locked copies any more. */
void managed_copy_settle(void);

/* Later work waits for the copies on the library's stream. */
void managed_sent_locked(void);

/* The library's stream waits for copies on the program's. */
void managed_follow_locked(void);

/* Later work on the stream waits for all copies. */
void managed_follow_on_locked(struct stream *stream);

/* The stream for copies that work on `stream` will use; NULL = work on any stream. Before that
 * work, with the channel lock. */
struct stream *managed_stream_for_locked(struct stream *stream);

/* A fence behind the copies; or one on another stream, whose number has been issued. */
struct fence managed_send_fence_locked(void);
void managed_fence_on_locked(const struct stream *stream, uint32_t seq);

/* Waits without writing device printf output, as the program may be inside stdio. Returns the error
 * when the fence will never pass. */
CUresult managed_wait_quietly(struct fence fence);

/* The hooks of managed_hooks.h. */
void managed_copy_push(struct stream *stream);
void managed_copy_count_work(void);
void managed_copy_pull(void);
