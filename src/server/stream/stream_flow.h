/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work of a client is in one stream of the driver.
 *
 * The server cannot take work back from a driver's stream, so an exclusive call has to wait for it.
 * NVIDIA's driver takes 1024 launches before one has to wait, and each may be a graph of 16
 * kernels. So the rest of a client's work stays in its ring. A stream is given its work in steps of
 * a few submissions. Behind each step comes a checkpoint, an event. While the stream has as much in
 * flight as flow_control.h allows, the session's thread polls the checkpoints until it has less.
 * A stream never runs empty because of this. While another session waits for an idle point, no
 * stream gets more than the strict limit. A client that makes streams wait for itself is limited by
 * the number of submissions alone.
 *
 * Functions are the session thread's unless their comment says otherwise.
 */
#pragma once

#include <stdatomic.h>

#include "device.h"
#include "flow_control.h"

struct session;
struct stream;
struct work_progress;

#define FLOW_CHECKPOINTS_MAX 16u

struct flow_checkpoint {
    CUevent event;       /* created when first needed */
    int32_t submissions; /* between the checkpoint before and this one */
};

struct stream_flow {
    struct flow_control control;
    atomic_uint_fast64_t progressed_at; /* clock_ns() when it has passed a checkpoint last */
    unsigned first, count;
    struct flow_checkpoint checkpoints[FLOW_CHECKPOINTS_MAX];
};

/* Of a new stream, whose session and device are set. Needs no context. */
void stream_flow_init(struct stream *stream);

/* The stream gets no more work. In its context. */
void stream_flow_end(struct stream *stream);

/* In its context, when `left` is used up: sets a checkpoint, and waits at rest (suspend.h) until
 * the stream may be given more. No lock is held. */
void stream_flow_step(struct stream *stream);

/* Whether the session must wait for capacity before its next command, because a worker of the pool
 * served it at that step. And the wait for it. */
bool streams_need_capacity(const struct session *session);
void streams_await_capacity(struct session *session);

/* Polls the checkpoints of all streams of a session that is suspended (idle.h). */
void streams_poll(struct session *session);

/* From any thread: how far the session's work has come (idle.h). */
struct work_progress streams_progress(const struct session *session);
