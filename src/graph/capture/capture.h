/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture: work given to a stream becomes nodes of a graph. The owner keeps a capture_stream in
 * each stream and a capture_event in each event, both initially zero. Before it queues work it
 * asks:
 *
 *     if (capture_is_on(&stream->capture))
 *         return capture_kernel_locked(&stream->capture, &params, attributes, count);
 *
 * The next captured node depends on the stream's tails. An event recorded during a capture keeps
 * the tails of that time, and a stream that waits for the event joins the capture. All functions
 * need graph_backend.lock.
 */
#pragma once

#include "graph_model.h"

struct capture; /* with all streams that joined */

/* A set of nodes, by handle, because nodes may have been destroyed. */
struct capture_tails {
    CUgraphNode *nodes;
    CUgraphEdgeData *data; /* as many: of the edges that will lead from there */
    size_t count;
};

struct capture_stream {
    _Atomic(struct capture *) capture; /* NULL: work is done, not captured */
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

/* For a stream that captures. They add a node instead of running the work; the node becomes the
 * only tail. An error of the call leaves the capture as it was; an invalidated capture answers
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. */
CUresult capture_kernel_locked(struct capture_stream *stream, const CUDA_KERNEL_NODE_PARAMS *params,
                               const CUlaunchAttribute *attributes, unsigned count);
CUresult capture_copy_locked(struct capture_stream *stream, const CUDA_MEMCPY3D *copy);
CUresult capture_fill_locked(struct capture_stream *stream, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult capture_host_locked(struct capture_stream *stream, CUhostFn function, void *user);
CUresult capture_mem_ops_locked(struct capture_stream *stream, unsigned count,
                                const CUstreamBatchMemOpParams *ops);
/* The program gets the address at once, although only the launch allocates the memory. */
CUresult capture_allocate_locked(struct capture_stream *stream,
                                 const CUDA_MEM_ALLOC_NODE_PARAMS *params,
                                 CUdeviceptr *ret_address);
CUresult capture_free_locked(struct capture_stream *stream, CUdeviceptr address);
/* cuGraphLaunch into a capturing stream: the exec's graph becomes a child graph. */
CUresult capture_exec_locked(struct capture_stream *stream, const struct graph_exec *exec);

/* cuEventRecord into a capturing stream; `flags` may make it a node. The owner calls
 * capture_event_forget_locked() when an event is recorded outside a capture, and when it is
 * destroyed. */
CUresult capture_record_locked(struct capture_stream *stream, struct capture_event *event,
                               CUevent handle, unsigned flags);
/* The record of an event that belongs to the last captured launch: edges lead from a port of that
 * kernel to the nodes that wait. */
CUresult capture_record_port_locked(struct capture_stream *stream, struct capture_event *event,
                                    CUevent handle, CUgraphEdgeData data);
void capture_event_forget_locked(struct capture_event *event);
static inline bool capture_has_event(const struct capture_event *event)
{
    return event->capture != 0;
}

/* cuStreamWaitEvent, when the stream captures or the event was captured. `is_recorded`: the event
 * was recorded outside a capture, so a capture cannot wait for it. */
CUresult capture_wait_locked(struct capture_stream *stream, struct capture_event *event,
                             CUevent handle, unsigned flags, bool is_recorded);

/* Before a query, synchronization or elapsed time of an event. For a captured event it invalidates
 * the capture and answers CUDA_ERROR_CAPTURED_EVENT; 0 for another event. */
CUresult capture_refuse_event_locked(struct capture_event *event);

/* Before a call on this stream that cannot be captured (synchronize, query). Returns 0 when the
 * stream does not capture. Else it invalidates the capture and answers
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult capture_refuse_locked(struct capture_stream *stream);

/* Before work in the legacy stream. 0, or CUDA_ERROR_STREAM_CAPTURE_IMPLICIT when it would wait for
 * a capturing stream, whose capture is then invalid. */
CUresult capture_legacy_locked(CUcontext context);

/* Before a call that is unsafe while a stream captures (cuMemAlloc, cuCtxSynchronize). Returns 0,
 * or CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED as the modes of this thread and of the captures say. */
CUresult capture_unsafe_locked(void);

/* The stream is about to be destroyed. A capture that it began ends with it. A capture that it
 * joined goes on, and its origin must still join the work of this stream. */
void capture_stream_gone_locked(struct capture_stream *stream);
