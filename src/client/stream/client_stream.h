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

/* context_enter() and stream_resolve() in one. */
CUresult stream_enter(CUstream handle, struct stream **ret_stream);

/* For calls that cannot be captured: refused while the stream captures. */
CUresult stream_enter_uncaptured(CUstream handle, struct stream **ret_stream);

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

/* The fence of a command that stream_begin_fenced() gave `seq` to. */
static inline struct fence stream_fence_at(const struct stream *stream, uint32_t seq)
{
    return (struct fence){stream->word, seq};
}

/* Waits for all work of the stream, and reports its error. The caller holds no lock. */
CUresult stream_synchronize(struct stream *stream);

/* The same for every stream of a context, the legacy one included. */
CUresult stream_synchronize_context(struct context *context);

/* A number that changes when the program has synchronized with a stream, an event or a context. */
void stream_count_wait(void);
uint64_t stream_waits(void);

/* Waits until nothing of this client runs on the device, if anything does. */
CUresult stream_drain_device(struct device *device);

/* The same for all devices. */
CUresult stream_drain_all(void);

/* Whether streams of its device do not wait for the legacy stream. */
bool stream_has_independent(const struct stream *stream);

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
