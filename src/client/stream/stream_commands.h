/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands on streams, and whether they are done. A command carries no fence of its own unless the
 * caller needs one. A fence is sent when a thread begins to wait, and covers all that went before.
 */
#pragma once

#include "client_stream.h"

/*
 * Every command on a stream stands between these two. They hold the channel lock, so sequence
 * numbers enter the ring in order. Work announced by stream_begin() has no fence.
 * stream_begin_fenced() returns the number that the command has to carry.
 */
void stream_begin(struct stream *stream);
uint32_t stream_begin_fenced(struct stream *stream);
void stream_end(void);

/* For commands of the library's own, which are sent without these two: notes when the stream began
 * to be busy. With the channel lock. */
void stream_mark_work_locked(struct stream *stream);

/* Sends a fence behind everything put on the stream so far. With the channel lock. Returns an error
 * when the server is gone. */
CUresult stream_send_fence_locked(struct stream *stream);

/* A fence behind everything put on the stream so far; sends one if there is none yet. */
CUresult stream_fence(struct stream *stream, struct fence *ret_fence);

/* After the server's death: whether it can have read work of the stream that is not done. It has
 * read what was sent before `read`. */
bool stream_lost_work(const struct stream *stream, uint64_t read);

/* Whether all that was put on the stream is known to be done. With the channel lock. */
bool stream_is_done_locked(const struct stream *stream);

/* The only stream with work that is not known to be done; NULL when there is none, or several. With
 * the locks of the client and of the channel. */
struct stream *stream_only_busy_locked(void);

/* Whether the stream is the idle legacy stream of its device, and the program has no other stream
 * there but for `own` of the library's. With the channel lock. */
bool stream_is_sole_and_idle_locked(const struct stream *stream, unsigned own);

/* Whether all that was put on any stream is known to be done. With the locks of the client and of
 * the channel. */
bool stream_all_idle_locked(void);
