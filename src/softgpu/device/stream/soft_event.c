/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. A record is an operation that does nothing. The event points at its last record, and to
 * wait for the event is to depend on that operation.
 */
#include <stdlib.h>

#include "shared_event.h"
#include "soft_context.h"
#include "soft_event.h"
#include "soft_part.h"
#include "soft_printf.h"
#include "soft_stream.h"
#include "stream_prepare.h"

/* Of a record, and of a wait. */
static const struct operation_type mark_type = {0};

CUresult event_create_locked(struct context *context, unsigned flags, struct shared_event *shared,
                             CUevent *ret_event)
{
    struct event *event = calloc(1, sizeof(*event));

    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->handle = soft_add(SOFT_EVENT, event);
    if (!event->handle) {
        free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->context = context;
    event->flags = flags;
    event->shared = shared;
    list_append(&context->events, &event->in_context);
    *ret_event = (CUevent)event->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct context *context;
    struct shared_event *shared = NULL;
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

    if (Flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result && Flags & CU_EVENT_INTERPROCESS)
        result = shared_event_create_locked(&shared);
    if (!result)
        result = event_create_locked(context, Flags, shared, phEvent);
    if (result)
        shared_event_unref_locked(shared);
    return result;
}

void event_destroy_locked(struct event *event)
{
    handles_remove(&soft_handles, SOFT_EVENT, event->handle);
    list_remove(&event->in_context);
    capture_event_forget_locked(&event->capture);
    operation_unref_locked(event->record);
    shared_event_unref_locked(event->shared);
    free(event);
}

CUresult soft_cuEventDestroy_v2(CUevent hEvent)
{
    struct event *event;
    SOFT_LOCKED;

    event = soft_get(SOFT_EVENT, hEvent);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    event_destroy_locked(event);
    return CUDA_SUCCESS;
}

CUresult event_prepare_locked(CUevent handle, struct operation **ret_operation)
{
    const struct event *event = soft_get(SOFT_EVENT, handle);
    struct operation *operation;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->shared)
        return CUDA_ERROR_NOT_SUPPORTED;
    operation = operation_create(sizeof(*operation), &mark_type);
    if (!operation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_operation = operation;
    return CUDA_SUCCESS;
}

void event_recorded_locked(CUevent handle, struct operation *record)
{
    struct event *event = soft_get(SOFT_EVENT, handle);

    operation_ref_locked(record);
    operation_unref_locked(event->record);
    event->record = record;
}

void event_awaited_locked(CUevent handle, struct operation *wait)
{
    struct event *event = soft_get(SOFT_EVENT, handle);

    operation_depend_locked(wait, event->record);
}

CUresult soft_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    struct event *event;
    struct stream *stream;
    struct operation *record;

    if (flags & ~CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (result)
        return result;
    event = soft_get(SOFT_EVENT, hEvent);
    if (!event || (flags != CU_EVENT_RECORD_EXTERNAL && event->context != stream->context))
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_is_on(&stream->capture))
        return capture_record_locked(&stream->capture, &event->capture, hEvent, flags);
    capture_event_forget_locked(&event->capture);
    if (event->shared)
        return shared_event_record_locked(event->shared, stream);
    result = event_prepare_locked(hEvent, &record);
    if (result)
        return result;
    event_recorded_locked(hEvent, record);
    schedule_enqueue_locked(stream, record);
    operation_unref_locked(record);
    return CUDA_SUCCESS;
}

CUresult soft_cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return soft_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

static bool record_captured(CUevent handle, CUstream stream_handle, CUgraphEdgeData data,
                            CUresult *ret_result)
{
    struct event *event;
    struct stream *stream;
    SOFT_LOCKED;

    *ret_result = stream_work_locked(stream_handle, &stream);
    if (*ret_result || !capture_is_on(&stream->capture))
        return *ret_result != CUDA_SUCCESS;
    event = soft_get(SOFT_EVENT, handle);
    *ret_result = event
                      ? capture_record_port_locked(&stream->capture, &event->capture, handle, data)
                      : CUDA_ERROR_INVALID_HANDLE;
    return true;
}

CUresult event_check_of_launch(CUevent handle)
{
    SOFT_LOCKED;
    const struct event *event = soft_get(SOFT_EVENT, handle);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    return event->flags & CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult event_record_of_launch(CUevent handle, CUstream stream, CUgraphEdgeData data)
{
    CUresult result;

    return record_captured(handle, stream, data, &result) ? result
                                                          : soft_cuEventRecord(handle, stream);
}

static CUresult event_find_locked(CUevent handle, struct event **ret_event)
{
    struct event *event = soft_get(SOFT_EVENT, handle);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->context->error)
        return event->context->error;
    CUresult result = capture_refuse_event_locked(&event->capture);
    if (!result)
        *ret_event = event;
    return result;
}

CUresult soft_cuEventQuery(CUevent hEvent)
{
    struct event *event;
    SOFT_LOCKED;
    CUresult result = event_find_locked(hEvent, &event);

    if (result)
        return result;
    if (event->shared ? !shared_event_is_done(event->shared)
                      : event->record && event->record->state != OPERATION_FINISHED)
        return CUDA_ERROR_NOT_READY;
    return CUDA_SUCCESS;
}

CUresult soft_cuEventSynchronize(CUevent hEvent)
{
    struct event *event;
    SOFT_LOCKED;
    CUresult result = event_find_locked(hEvent, &event);

    if (result)
        return result;

    struct context *context = event->context;

    if (event->shared)
        shared_event_wait_locked(event->shared);
    else if (event->record)
        operation_wait_finished_locked(event->record);
    parts_synchronized_locked(context->device);
    print_flush_locked(context->printer);
    return context->error;
}

static CUresult time_of(const struct event *event, uint64_t *ret_ns)
{
    if (!event->record || (event->flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->record->state != OPERATION_FINISHED)
        return CUDA_ERROR_NOT_READY;
    *ret_ns = event->record->finished_ns;
    return CUDA_SUCCESS;
}

CUresult soft_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct event *start, *end;
    uint64_t start_ns, end_ns;
    CUresult result;

    SOFT_LOCKED;
    if ((result = event_find_locked(hStart, &start)) || (result = event_find_locked(hEnd, &end)))
        return result;
    if (start->context != end->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((result = time_of(start, &start_ns)) || (result = time_of(end, &end_ns)))
        return result;
    *pMilliseconds = (double)(int64_t)(end_ns - start_ns) / 1e6;
    return CUDA_SUCCESS;
}

CUresult soft_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct event *event;
    struct stream *stream;
    struct operation *wait;

    if (Flags & ~CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(hStream, &stream);

    if (result)
        return result;
    event = soft_get(SOFT_EVENT, hEvent);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_is_on(&stream->capture) || capture_has_event(&event->capture))
        return capture_wait_locked(&stream->capture, &event->capture, hEvent, Flags,
                                   event->record != NULL);
    if (event->shared)
        return shared_event_await_locked(event->shared, stream);
    if (!event->record || event->record->state == OPERATION_FINISHED)
        return CUDA_SUCCESS;
    result = event_prepare_locked(hEvent, &wait);
    if (result)
        return result;
    event_awaited_locked(hEvent, wait);
    schedule_enqueue_locked(stream, wait);
    operation_unref_locked(wait);
    return CUDA_SUCCESS;
}

void events_drop_context_locked(struct context *context)
{
    list_for_each_safe (struct event, event, &context->events, in_context)
        event_destroy_locked(event);
}
