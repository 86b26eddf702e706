/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work of a client is in one stream of the driver.
 *
 * The server cannot take work back from a driver's stream, so an exclusive call has to wait for it.
 * NVIDIA's driver takes 1024 launches before one has to wait, and each may be a graph of 16
 * kernels. So the rest of a client's work stays in its ring. Behind every few submissions comes a
 * checkpoint. While the stream has as much in flight as flow_control.h allows, the session's thread
 * waits for the next checkpoint. A stream never runs empty because of this. While another session
 * waits for an idle point, no stream gets more than the strict limit. A client that makes streams
 * wait for itself is limited by the number of submissions alone.
 *
 * Functions are the session thread's unless their comment says otherwise.
 */
#pragma once

#include <stdatomic.h>

#include "checkpoint.h"
#include "flow_control.h"

struct session;
struct stream;
struct work_progress;

#define FLOW_CHECKPOINTS_MAX 16u

struct flow_checkpoint {
    struct checkpoint checkpoint;
    int32_t submissions; /* between the checkpoint before and this one */
};

struct stream_flow {
    struct flow_control control;
    atomic_uint_fast64_t progressed_at; /* clock_ns() when it has passed a checkpoint last */
    unsigned first, count;
    struct flow_checkpoint checkpoints[FLOW_CHECKPOINTS_MAX];
};

void stream_flow_init(struct stream *stream);

/* Gives the events back. */
void stream_flow_end(struct stream *stream);

/* When `left` is used up: sets a checkpoint, and waits until the stream may be given more, at rest
 * (session.h). No lock is held. */
void stream_flow_step(struct stream *stream);

/* Whether the session must wait for capacity before its next command, because a worker of the pool
 * served it at that step. And the wait for it. */
bool streams_need_capacity(const struct session *session);
void streams_await_capacity(struct session *session);

/* Whether others have suspended the session, and waiting, at rest, until they have not. */
bool streams_are_suspended(struct session *session);
void streams_await_resume(struct session *session);

/* From any thread: how far the session's work has come (idle.h). */
struct work_progress streams_progress(const struct session *session);
