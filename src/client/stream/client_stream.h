/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: minted here, rebuilt in the server, and waited for by their fence word. */
#pragma once

#include <stdatomic.h>

#include "capture.h"
#include "client_context.h"
#include "client_fence.h"
#include "cuda_stream_attributes.h"

enum stream_kind {
    STREAM_LEGACY,      /* stream 0 of a device */
    STREAM_BLOCKING,    /* ordered against stream 0 */
    STREAM_NONBLOCKING, /* independent of it */
};

/* State that the streams of one device share. */
struct stream_group {
    struct stream *_Atomic legacy; /* made when it is first used; under client->lock */
    uint32_t blocking_streams, nonblocking_streams; /* both under the channel lock */
    uint64_t blocking_work;                         /* commands put on blocking streams; likewise */
};

struct stream {
    uint64_t handle;
    unsigned long long id;
    struct context *context;
    struct device *device;
    struct stream_group *group;
    enum stream_kind kind;
    unsigned flags;
    int priority;
    uint32_t word; /* index of its fence word, and of its host-wait word */
    uint32_t host_wait_seq;
    bool unfenced;         /* commands behind the last fence; under the channel lock */
    uint64_t first_work;   /* channel.sent when it began to be busy; likewise */
    uint64_t last_work;    /* blocking: group->blocking_work with the last command; likewise */
    uint64_t work_covered; /* legacy: group->blocking_work at the last fence */
    uint64_t managed_seen; /* uploads of managed variables that it waits for; likewise */
    struct capture_stream capture; /* under client_graph_lock */
    struct cuda_stream_attributes attributes;
    struct list link; /* context->streams */
};

/* Called once while attaching. */
void stream_init(void);

/* The nearest that the device has. */
int stream_clamp_priority(const struct device *device, int priority);

/* The stream that `handle` means to the calling thread in `context`. CUDA_ERROR_INVALID_HANDLE, or
 * CUDA_ERROR_OUT_OF_MEMORY for one that is made now. */
CUresult stream_resolve(struct context *context, CUstream handle, struct stream **ret_stream);

/* The legacy stream of just this context, whatever is current. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult stream_legacy_of(struct context *context, struct stream **ret_stream);

/* The context of a stream that is no default stream, in a thread without a current context. Else
 * CUDA_ERROR_INVALID_CONTEXT. */
CUresult stream_context(CUstream handle, struct context **ret_context);

/* context_enter() for a call with a stream, which may tell the context. */
static inline CUresult stream_enter_context(CUstream handle, struct context **ret_context)
{
    CUresult result = context_enter(ret_context);

    if (__builtin_expect(result == CUDA_ERROR_INVALID_CONTEXT, 0))
        result = stream_context(handle, ret_context);
    return result;
}

/* That and stream_resolve() in one. */
CUresult stream_enter(CUstream handle, struct stream **ret_stream);

/* For calls that cannot be captured: refused while the stream captures. */
CUresult stream_enter_uncaptured(CUstream handle, struct stream **ret_stream);

/* The fence of a command that stream_begin_fenced() gave `seq` to. */
static inline struct fence stream_fence_at(const struct stream *stream, uint32_t seq)
{
    return (struct fence){stream->word, seq};
}

/* Whether streams of its device do not wait for the legacy stream. */
bool stream_has_independent(const struct stream *stream);

/* A nonblocking stream for the library itself, which no context ends; NULL = no memory. */
struct stream *stream_create_own(struct context *context);

/* Makes it again with another server. With the library closed. */
CUresult stream_replay(const struct stream *stream);

/* Destroys the streams of a context. */
void stream_destroy_all(struct context *context);

/* The same when the program still has their handles: stream_unknown() knows them from then on. */
void stream_detach_all(struct context *context);

/* The result of a call for a handle that names no stream. */
CUresult stream_unknown(CUstream handle);

/* Destroys a stream, behind all that is on it. Does nothing when there is no such stream any more.
 */
void stream_destroy_handle(CUstream handle);
