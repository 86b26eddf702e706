/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture: work given to a stream becomes nodes of a graph. The owner keeps a capture_stream in
 * each of its streams and a capture_event in each of its events (zeroed memory will do), and asks
 * here before it queues anything:
 *
 *     if (capture_is_on(&stream->capture))
 *         return capture_kernel_locked(&stream->capture, &params, attributes, count);
 *
 * What a stream captures next depends on its tails. An event that was recorded while capturing
 * keeps the tails of then, and a stream that waits for it joins the capture. Everything here is
 * called with graph_backend.lock held.
 */
#pragma once

#include "graph_model.h"

struct capture; /* from begin to end, with all streams that joined */

/* A set of nodes, by their handles: they may be gone. */
struct capture_tails {
    CUgraphNode *nodes;
    CUgraphEdgeData *data; /* as many: of the edges that will lead from there */
    size_t count;
};

struct capture_stream {
    struct capture *capture; /* NULL: work is done, not captured */
    struct capture_tails tails;
    struct list in_capture;
    bool is_legacy;   /* the owner's word: it cannot be captured, and waits for ... */
    bool is_blocking; /* ... these */
    CUcontext context;
};

struct capture_event {
    uint64_t capture; /* number of the capture that recorded it last; 0: none did */
    struct capture_tails tails;
};

static inline bool capture_is_on(const struct capture_stream *stream)
{
    return stream->capture != NULL;
}

/* In place of doing it, for a stream that captures: they add a node, which is then the only tail.
 * An error of the call leaves the capture as it was; an invalidated capture answers
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. */
CUresult capture_kernel_locked(struct capture_stream *stream, const CUDA_KERNEL_NODE_PARAMS *params,
                               const CUlaunchAttribute *attributes, unsigned count);
CUresult capture_copy_locked(struct capture_stream *stream, const CUDA_MEMCPY3D *copy);
CUresult capture_fill_locked(struct capture_stream *stream, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult capture_host_locked(struct capture_stream *stream, CUhostFn function, void *user);
CUresult capture_mem_ops_locked(struct capture_stream *stream, unsigned count,
                                const CUstreamBatchMemOpParams *ops);
/* The address is the program's at once, though nothing is allocated before the launch. */
CUresult capture_allocate_locked(struct capture_stream *stream,
                                 const CUDA_MEM_ALLOC_NODE_PARAMS *params,
                                 CUdeviceptr *ret_address);
CUresult capture_free_locked(struct capture_stream *stream, CUdeviceptr address);
/* cuGraphLaunch into a capturing stream: the exec's graph becomes a child graph. */
CUresult capture_exec_locked(struct capture_stream *stream, const struct graph_exec *exec);

/* cuEventRecord into a capturing stream; `flags` may make it a node. Otherwise the owner calls
 * capture_event_forget_locked(): when an event is recorded for real, and when it is destroyed. */
CUresult capture_record_locked(struct capture_stream *stream, struct capture_event *event,
                               CUevent handle, unsigned flags);
/* The record that belongs to the launch which the stream captured last: such edges lead from the
 * kernel to what waits for it. */
CUresult capture_record_port_locked(struct capture_stream *stream, struct capture_event *event,
                                    CUevent handle, CUgraphEdgeData data);
void capture_event_forget_locked(struct capture_event *event);
static inline bool capture_has_event(const struct capture_event *event)
{
    return event->capture != 0;
}

/* cuStreamWaitEvent, when the stream captures or the event was captured. `is_recorded`: the event
 * was recorded for real, which a capture cannot wait for. */
CUresult capture_wait_locked(struct capture_stream *stream, struct capture_event *event,
                             CUevent handle, unsigned flags, bool is_recorded);

/* What cannot be done to a captured event (query, synchronize, elapsed time): invalidates the
 * capture, and answers CUDA_ERROR_CAPTURED_EVENT. 0 for another event. */
CUresult capture_refuse_event_locked(struct capture_event *event);

/* A call that cannot be captured (synchronize, query) on this stream: 0 when it does not capture;
 * else the capture is invalid, and the answer CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult capture_refuse_locked(struct capture_stream *stream);

/* Before work in the legacy stream: 0, or CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, when a stream that
 * it waits for captures (that capture is then invalid). */
CUresult capture_legacy_locked(CUcontext context);

/* Before a call that is unsafe while a stream captures (cuMemAlloc, cuCtxSynchronize): 0, or
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED as the modes of this thread and of the captures say. */
CUresult capture_unsafe_locked(void);

/* The stream is about to be destroyed. A capture that it began ends with it; one that it joined
 * goes on, and still has to be joined by the work that the stream has captured. */
void capture_stream_gone_locked(struct capture_stream *stream);
