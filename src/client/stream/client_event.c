/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event is the fence of its last record. The server keeps a real event beside it, for streams
 * that wait for it on the device and for the time between two events. Of an event that other
 * processes may record as well, only the server's counts.
 */
#include "client_event.h"

#include <stdlib.h>

#include "cleanup.h"
#include "client_capture.h"
#include "client_printf.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "event_query.h"
#include "managed_hooks.h"
#include "recovery_hook.h"
#include "stream_commands.h"
#include "stream_wait.h"
#include "wire_calls.h"

#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

struct event {
    uint64_t handle;
    struct context *context;
    unsigned flags;
    /* The last record, under the channel lock. An event that was never recorded is complete. */
    bool recorded;
    struct fence fence;
    uint64_t stream;
    bool awaited; /* other streams wait for it, and may be done before its fence is written */
    struct capture_event capture; /* under client_graph_lock */
    struct list link;
};

static struct event *event_lookup(CUevent handle)
{
    return handles_get(&client->handles, WIRE_EVENT, (uint64_t)handle);
}

bool event_exists(CUevent handle)
{
    return event_lookup(handle) != NULL;
}

bool event_is_shared(CUevent handle)
{
    const struct event *event = event_lookup(handle);

    return event && event->flags & CU_EVENT_INTERPROCESS;
}

bool event_keeps_time(CUevent handle)
{
    const struct event *event = event_lookup(handle);

    return event && !(event->flags & CU_EVENT_DISABLE_TIMING);
}

bool event_has_time(const void *object)
{
    const struct event *event = object;

    return event->recorded && !(event->flags & CU_EVENT_DISABLE_TIMING);
}

CUresult event_replay(const void *object)
{
    const struct event *event = object;
    struct wire_cuEventCreate in = {
        .hEvent = event->handle,
        .device = event->context->device->index,
        .flags = event->flags & ~(unsigned)CU_EVENT_INTERPROCESS,
    };

    return wire_cuEventCreate(&client->channel, &in);
}

static void send_create(const struct event *event)
{
    channel_lock(&client->channel);
    event_replay(event);
    channel_unlock(&client->channel);
}

/* An event of which the server does not know yet. */
static struct event *event_mint(struct context *context, unsigned flags)
{
    struct event *event = calloc(1, sizeof(*event));

    if (!event)
        return NULL;
    event->context = context;
    event->flags = flags;
    list_init(&event->link);
    event->handle = handles_add(&client->handles, WIRE_EVENT, event);
    if (!event->handle) {
        free(event);
        return NULL;
    }
    return event;
}

static void remember(struct event *event)
{
    pthread_mutex_lock(&client->lock);
    list_append(&event->context->events, &event->link);
    pthread_mutex_unlock(&client->lock);
}

static struct event *event_create(struct context *context, unsigned flags)
{
    struct event *event = event_mint(context, flags);

    if (!event)
        return NULL;
    send_create(event);
    remember(event);
    return event;
}

uint64_t event_create_own(struct context *context)
{
    struct event *event = event_mint(context, CU_EVENT_DISABLE_TIMING);

    if (!event)
        return 0;
    send_create(event);
    return event->handle;
}

CUresult event_open(struct context *context, uint64_t key0, uint64_t key1, CUevent *ret_event)
{
    struct event *event = event_mint(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    struct wire_cuIpcOpenEventHandle in = {.key0 = key0, .key1 = key1};
    struct wire_cuIpcOpenEventHandle_reply out;
    CUresult result;

    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    in.hEvent = event->handle;
    result = wire_cuIpcOpenEventHandle(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS) {
        handles_remove(&client->handles, WIRE_EVENT, event->handle);
        free(event);
        return result;
    }
    event->recorded = true;
    remember(event);
    *ret_event = (CUevent)event->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuEventCreate(CUevent *phEvent, unsigned Flags)
{
    struct context *context;
    struct event *event;
    CUresult result = context_enter(&context);

    if (Flags & ~(unsigned)EVENT_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    event = event_create(context, Flags);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phEvent = (CUevent)event->handle;
    return CUDA_SUCCESS;
}

static bool event_destroy(CUevent handle)
{
    struct wire_cuEventDestroy_v2 in = {.hEvent = (uint64_t)handle};
    struct event *event;

    pthread_mutex_lock(&client->lock);
    event = handles_remove(&client->handles, WIRE_EVENT, (uint64_t)handle);
    if (event)
        list_remove(&event->link);
    pthread_mutex_unlock(&client->lock);
    if (!event)
        return false;
    capture_forget_event(&event->capture);
    channel_lock(&client->channel);
    wire_cuEventDestroy_v2(&client->channel, &in);
    channel_unlock(&client->channel);
    free(event);
    return true;
}

CUresult client_cuEventDestroy_v2(CUevent hEvent)
{
    return event_destroy(hEvent) ? recovery_client_error() : CUDA_ERROR_INVALID_HANDLE;
}

static CUevent any_event(struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct event *event = list_first(&context->events, struct event, link);

    return event ? (CUevent)event->handle : NULL;
}

void event_destroy_all(struct context *context)
{
    CUevent handle;

    while ((handle = any_event(context)) != NULL)
        event_destroy(handle);
}

/* ---- records ---- */

/* Another process that learns of the record from this one's return finds it done. */
static CUresult settle_query(const struct event *event, CUresult result)
{
    bool done;

    if (result != CUDA_SUCCESS || !(event->flags & CU_EVENT_INTERPROCESS))
        return result;
    return event_query(event->handle, &done);
}

static CUresult record_event(struct event *event, struct stream *stream)
{
    struct wire_cuEventRecordWithFlags in = {.hEvent = event->handle, .hStream = stream->handle};
    CUresult result;

    in.seq = stream_begin_fenced(stream);
    event->fence = stream_fence_at(stream, in.seq);
    event->stream = stream->handle;
    event->recorded = true;
    event->awaited = false;
    result = wire_cuEventRecordWithFlags(&client->channel, &in);
    stream_end();
    return settle_query(event, result);
}

CUresult event_record_on(CUevent handle, struct stream *stream)
{
    struct event *event = event_lookup(handle);

    if (!event || event->context->device != stream->device)
        return CUDA_ERROR_INVALID_HANDLE;
    return record_event(event, stream);
}

CUresult event_record_captured(CUevent handle, struct stream *stream, CUgraphEdgeData data)
{
    struct event *event = event_lookup(handle);

    return event ? capture_record_of_launch(stream, &event->capture, handle, data)
                 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult event_check(CUevent handle)
{
    struct event *event = event_lookup(handle);

    return event ? capture_check_event(&event->capture) : CUDA_ERROR_INVALID_HANDLE;
}

struct fence event_fence(CUevent handle)
{
    const struct event *event = handle ? event_lookup(handle) : NULL;
    struct fence fence = FENCE_OF_NOTHING;

    channel_lock(&client->channel);
    if (event && event->recorded)
        fence = event->fence;
    channel_unlock(&client->channel);
    return fence;
}

/* A legacy stream is that of the current context, whose device has one for all of its contexts. A
 * green context shares the events of its primary one. */
static bool can_record(const struct event *event, const struct stream *stream,
                       const struct context *current)
{
    const struct context *context = stream->kind == STREAM_LEGACY ? current : stream->context;

    return event->context == (context->green ? context->device->primary : context);
}

/* An external record is a node of a graph, where one is being captured. */
CUresult client_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned flags)
{
    struct event *event = event_lookup(hEvent);
    struct context *context;
    struct stream *stream;
    CUresult result = stream_enter_context(hStream, &context);

    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!event || (flags != CU_EVENT_RECORD_EXTERNAL && !can_record(event, stream, context)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_takes_record(stream, &event->capture, hEvent, flags, &result))
        return result;
    return flags == CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_ILLEGAL_STATE
                                             : record_event(event, stream);
}

CUresult client_cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return client_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

struct last_record {
    bool pending;
    struct fence fence;
    uint64_t stream;
    bool awaited;
    unsigned flags;
    unsigned context_flags;
};

/* The last record, as it is now. A later record does not matter to threads that wait already. */
static CUresult find_record(CUevent handle, struct last_record *ret_record)
{
    struct event *event = event_lookup(handle);
    CUresult result = recovery_client_error();

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    channel_lock(&client->channel);
    *ret_record = (struct last_record){
        .pending = event->recorded && !fence_passed(event->fence),
        .fence = event->fence,
        .stream = event->stream,
        .awaited = event->awaited,
        .flags = event->flags,
        .context_flags = event->context->flags,
    };
    channel_unlock(&client->channel);
    return CUDA_SUCCESS;
}

/* The same for a call of the program, which may not ask about a record that was captured. */
static CUresult ask_record(CUevent handle, struct last_record *ret_record)
{
    struct event *event = event_lookup(handle);
    CUresult result = event ? capture_check_event(&event->capture) : CUDA_ERROR_INVALID_HANDLE;

    return result != CUDA_SUCCESS ? result : find_record(handle, ret_record);
}

static bool is_shared(const struct last_record *record)
{
    return record->flags & CU_EVENT_INTERPROCESS;
}

CUresult client_cuEventQuery(CUevent hEvent)
{
    struct last_record record;
    bool done = true;
    CUresult result = ask_record(hEvent, &record);

    if (result == CUDA_SUCCESS && (is_shared(&record) || (record.pending && record.awaited))) {
        result = event_query((uint64_t)hEvent, &done);
        record.pending = !done;
    }
    if (result != CUDA_SUCCESS)
        return result;
    if (record.pending)
        return CUDA_ERROR_NOT_READY;
    printf_output_ask();
    managed_pull();
    return client_asked_error();
}

/* As client_sync_error(), but nothing behind the event is waited for. */
static CUresult end_event_wait(void)
{
    CUresult result = client_asked_error();

    printf_output_collect_promptly();
    managed_pull();
    return result;
}

/* The stream may be gone by now; then the server cannot wake this thread, which polls. */
CUresult client_cuEventSynchronize(CUevent hEvent)
{
    struct last_record record;
    CUresult result = ask_record(hEvent, &record);
    bool sleep;

    if (result != CUDA_SUCCESS)
        return result;
    if (is_shared(&record)) {
        result = event_query_wait((uint64_t)hEvent);
        return result != CUDA_SUCCESS ? result : client_sync_error();
    }
    sleep =
        record.flags & CU_EVENT_BLOCKING_SYNC || record.context_flags & CU_CTX_SCHED_BLOCKING_SYNC;
    if (record.pending) {
        bool alive = handles_get(&client->handles, WIRE_STREAM, record.stream) != NULL;

        result = fence_wait_traced(record.fence, alive ? record.stream : 0,
                                   sleep ? FENCE_SLEEP : FENCE_SPIN);
    }
    stream_count_wait();
    return result != CUDA_SUCCESS ? result : end_event_wait();
}

/* A program that has waited for a stream behind the event finds the event complete. */
static void note_wait(CUevent handle)
{
    struct event *event = event_lookup(handle);

    if (event)
        event->awaited = true;
}

CUresult event_wait_on(CUevent handle, struct stream *stream)
{
    struct wire_cuStreamWaitEvent in = {.hEvent = (uint64_t)handle, .hStream = stream->handle};
    struct last_record record;
    CUresult result = find_record(handle, &record);

    if (result != CUDA_SUCCESS || (!record.pending && !is_shared(&record)))
        return result;
    stream_begin(stream);
    note_wait(handle);
    result = wire_cuStreamWaitEvent(&client->channel, &in);
    stream_end();
    return result;
}

CUresult client_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags)
{
    struct event *event = event_lookup(hEvent);
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_takes_wait(stream, &event->capture, hEvent, Flags, event->recorded, &result))
        return result;
    return event_wait_on(hEvent, stream);
}

static bool is_complete(const struct event *event)
{
    bool done = fence_passed(event->fence);

    if (!done && event->awaited)
        event_query(event->handle, &done);
    return done;
}

static CUresult timed_event(CUevent handle, struct event **ret_event)
{
    struct event *event = event_lookup(handle);
    CUresult result = event ? capture_check_event(&event->capture) : CUDA_ERROR_INVALID_HANDLE;

    if (result != CUDA_SUCCESS)
        return result;
    if (!event->recorded || event->flags & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_event = event;
    return is_complete(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult client_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct wire_cuEventElapsedTime_v2 in = {.hStart = (uint64_t)hStart, .hEnd = (uint64_t)hEnd};
    struct wire_cuEventElapsedTime_v2_reply out;
    struct event *start, *end;
    CUresult result = recovery_client_error();

    if (result == CUDA_SUCCESS)
        result = timed_event(hStart, &start);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) {
        CUresult other = timed_event(hEnd, &end);

        result = other != CUDA_SUCCESS ? other : result;
    }
    if (result == CUDA_SUCCESS && start->context != end->context)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = wire_cuEventElapsedTime_v2(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *pMilliseconds = out.milliseconds;
    return result;
}
