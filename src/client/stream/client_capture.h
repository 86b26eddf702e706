/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call on a stream asks first: whether it is to be done, or captured into a graph. A
 * program that never captures pays two loads.
 */
#pragma once

#include <stdatomic.h>

#include "client_stream.h"
#include "cuda_graph.h"
#include "graph_model.h"

/* Protects all graphs and captures. Taken before any other lock. */
extern pthread_mutex_t client_graph_lock;

/* Atomic: a stream has captured since the process attached. */
extern atomic_bool client_captured;

/* Called once while attaching. */
void capture_init(void);

/* A stream is about to capture: sets client_captured. */
void capture_announce(void);

/* Whether the stream is being captured. Another thread that begins to capture it at this moment
 * races with its own program. */
static inline bool stream_captures(const struct stream *stream)
{
    return atomic_load_explicit(&stream->capture.capture, memory_order_relaxed);
}

/* Whether no capture concerns the stream. */
static inline bool stream_is_plain(const struct stream *stream)
{
    return !stream_captures(stream) &&
           (stream->kind != STREAM_LEGACY ||
            !atomic_load_explicit(&client_captured, memory_order_relaxed));
}

/* True when a launch is over with *ret_result, captured or refused; it is not to be done then.
 * Called only for a stream that is not plain. All of these take client_graph_lock. */
/* The record of an event that belongs to the launch which the stream captured last. */
CUresult capture_record_of_launch(struct stream *stream, struct capture_event *event,
                                  CUevent handle, CUgraphEdgeData data);

bool capture_takes_kernel(struct stream *stream, const CUlaunchConfig *config, CUfunction f,
                          void **values, void **extra, CUresult *ret_result);

/* The same for other work. These check themselves whether a stream is plain. */
bool capture_takes_fill(struct stream *stream, const CUDA_MEMSET_NODE_PARAMS *fill, bool sync,
                        CUresult *ret_result);
bool capture_takes_host(struct stream *stream, CUhostFn function, void *user, CUresult *ret_result);
bool capture_takes_mem_ops(struct stream *stream, unsigned count,
                           const CUstreamBatchMemOpParams *ops, CUresult *ret_result);
bool capture_takes_allocation(struct stream *stream, CUdevice device, size_t size,
                              CUdeviceptr *ret_address, CUresult *ret_result);
bool capture_takes_free(struct stream *stream, CUdeviceptr address, CUresult *ret_result);
bool capture_takes_exec_locked(struct stream *stream, const struct graph_exec *exec,
                               CUresult *ret_result);

/* These two also check whether the event was captured. */
bool capture_takes_record(struct stream *stream, struct capture_event *event, CUevent handle,
                          unsigned flags, CUresult *ret_result);
bool capture_takes_wait(struct stream *stream, struct capture_event *event, CUevent handle,
                        unsigned flags, bool is_recorded, CUresult *ret_result);

/* Before a call that cannot be captured: an error when the stream captures, or would wait for one
 * that does. */
CUresult capture_check_stream_slowly(struct stream *stream);

static inline CUresult capture_check_stream(struct stream *stream)
{
    return stream_is_plain(stream) ? CUDA_SUCCESS : capture_check_stream_slowly(stream);
}

/* Before a call that asks about an event: CUDA_ERROR_CAPTURED_EVENT when its last record was
 * captured, and that capture is invalid from then on. */
CUresult capture_check_event(struct capture_event *event);

/* Before a call that might make capturing streams wait, such as an allocation.
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: a capture forbids that to the calling thread, and that
 * capture is invalid from then on. */
CUresult capture_check_unsafe(void);

/* context_enter() and capture_check_unsafe() in one. */
CUresult context_enter_unsafe(struct context **ret_context);

/* With client_graph_lock: true when the stream captures. When it does not, *ret_result is an error
 * if it is a legacy stream that other captures forbid to be used. */
bool stream_captures_locked(struct stream *stream, CUresult *ret_result);

/* The stream or event is about to be destroyed. */
void capture_forget_stream(struct stream *stream);
void capture_forget_event(struct capture_event *event);
