/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. A client asks its fences whether an event has completed. So the driver's events serve
 * only to make streams wait for each other and to measure time.
 */
#include "event.h"

#include <stdlib.h>

#include "ipc_event.h"
#include "ipc_share.h"
#include "refused_objects.h"
#include "server_dispatch.h"
#include "stream_state.h"

static CUresult add_event(struct session *session, const struct wire_cuEventCreate *in,
                          const struct device *device, struct event **ret_event)
{
    enum object_admission admission = object_admit(session, QUOTA_EVENTS);
    struct event *event = admission == OBJECT_DROPPED ? NULL : calloc(1, sizeof(*event));

    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->device = device;
    event->uncharged = admission == OBJECT_REFUSED;
    CUresult result = session_put(session, WIRE_EVENT, in->hEvent, event);
    if (result != CUDA_SUCCESS) {
        free(event);
        return result;
    }
    object_charge(session, QUOTA_EVENTS, event->uncharged);
    *ret_event = event;
    return CUDA_SUCCESS;
}

/* As with streams, an event that the driver refuses is kept without the driver's. */
CUresult serve_cuEventCreate(struct session *session, const struct wire_cuEventCreate *in)
{
    const struct device *device = session_find_device(session, "cuEventCreate", in->device);
    struct event *event;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = add_event(session, in, device, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->uncharged)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = session_enter(session, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuEventCreate(&event->driver, in->flags & CU_EVENT_DISABLE_TIMING);
    return result;
}

void event_destroy(struct session *session, struct event *event)
{
    if (!event)
        return;
    if (event->share) {
        ipc_withdraw(session, event->share);
        ipc_share_unref(session->server, event->share);
    } else if (event->driver) {
        driver.cuEventDestroy_v2(event->driver);
    }
    free(event);
}

CUresult serve_cuEventDestroy_v2(struct session *session, const struct wire_cuEventDestroy_v2 *in,
                                 struct event *hEvent)
{
    CUresult result = session_enter(session, hEvent->device);

    session_remove(session, WIRE_EVENT, in->hEvent);
    object_uncharge(session, QUOTA_EVENTS, hEvent->uncharged);
    event_destroy(session, hEvent);
    return result;
}

static CUresult record(const struct event *event, const struct stream *stream)
{
    CUevent own;
    CUresult result = event_driver_in(event, stream->device, &own);

    if (result == CUDA_SUCCESS)
        result = driver.cuEventRecord(own, stream->driver);
    if (result == CUDA_SUCCESS)
        event_note_record(event, own);
    return result;
}

CUresult serve_cuEventRecordWithFlags(struct session *session,
                                      const struct wire_cuEventRecordWithFlags *in,
                                      struct event *hEvent, struct stream *hStream)
{
    CUresult result = stream_begin_brief(hStream);

    if (result == CUDA_SUCCESS)
        result = record(hEvent, hStream);
    return stream_end_work(hStream, in->seq, result);
}

CUresult serve_cuStreamWaitEvent(struct session *session, const struct wire_cuStreamWaitEvent *in,
                                 struct stream *hStream, struct event *hEvent)
{
    CUevent awaited = event_driver(hEvent);
    CUresult result = stream_begin_brief(hStream);

    if (result == CUDA_SUCCESS)
        result = awaited ? driver.cuStreamWaitEvent(hStream->driver, awaited, 0)
                         : CUDA_ERROR_INVALID_HANDLE;
    return stream_end_work(hStream, 0, result);
}

CUresult serve_cuEventElapsedTime_v2(struct session *session,
                                     const struct wire_cuEventElapsedTime_v2 *in,
                                     struct event *hStart, struct event *hEnd,
                                     struct wire_cuEventElapsedTime_v2_reply *ret_out)
{
    CUresult result = session_enter(session, hStart->device);

    if (result == CUDA_SUCCESS && (!hStart->driver || !hEnd->driver))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = driver.cuEventElapsedTime_v2(&ret_out->milliseconds, hStart->driver, hEnd->driver);
    return result;
}
