/* SPDX-License-Identifier: Apache-2.0 */
/* See ipc_event.h. */
#include "ipc_event.h"

#include <stdlib.h>

#include "ipc_share.h"
#include "server_dispatch.h"
#include "spare_events.h"

/* Partner of event_note_record() in any session. */
CUevent event_driver(const struct event *event)
{
    return event->share ? atomic_load_explicit(&event->share->event, memory_order_acquire)
                        : event->driver;
}

void event_note_record(const struct event *event, CUevent recorded)
{
    if (event->share)
        atomic_store_explicit(&event->share->event, recorded, memory_order_release);
}

/* Several sessions may be the first in a context; its partner is itself in another one. */
static CUresult add_event_of(struct ipc_share *share, const struct device *device,
                             CUevent *ret_event)
{
    CUevent made, before = NULL;
    CUresult result = spare_event_take(device, &made);

    if (result != CUDA_SUCCESS)
        return result;
    if (!atomic_compare_exchange_strong(&share->events[device->ordinal], &before, made))
        spare_event_keep(device, made);
    *ret_event = before ? before : made;
    return CUDA_SUCCESS;
}

CUresult event_driver_in(const struct event *event, const struct device *device, CUevent *ret_event)
{
    CUevent known = event->share ? atomic_load_explicit(&event->share->events[device->ordinal],
                                                        memory_order_acquire)
                                 : event->driver;

    if (!known && event->share)
        return add_event_of(event->share, device, ret_event);
    *ret_event = known;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult share_event(struct event *event)
{
    if (event->share)
        return CUDA_SUCCESS;
    if (!event->driver)
        return CUDA_ERROR_INVALID_HANDLE;
    event->share = ipc_share_create(
        &(struct ipc_share){.kind = IPC_EVENT, .device = event->device, .event = event->driver});
    if (!event->share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->share->events[event->device->ordinal] = event->driver;
    event->driver = NULL;
    return CUDA_SUCCESS;
}

CUresult serve_cuIpcGetEventHandle(struct session *session,
                                   const struct wire_cuIpcGetEventHandle *in, struct event *hEvent,
                                   struct wire_cuIpcGetEventHandle_reply *ret_out)
{
    CUresult result = share_event(hEvent);
    struct ipc_key key;

    (void)in;
    if (result == CUDA_SUCCESS)
        result = ipc_name(session, &(struct ipc_item){.share = hEvent->share}, &key);
    if (result != CUDA_SUCCESS)
        return result;
    ret_out->key0 = key.words[0];
    ret_out->key1 = key.words[1];
    return CUDA_SUCCESS;
}

/* Takes the reference over. */
static CUresult add_event(struct session *session, uint64_t handle, struct ipc_share *share)
{
    struct event *event = NULL;

    if (quota_allows(session, QUOTA_EVENTS, 1))
        event = calloc(1, sizeof(*event));
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (struct event){.device = share->device, .share = share};
    CUresult result = session_put(session, WIRE_EVENT, handle, event);
    if (result != CUDA_SUCCESS)
        free(event);
    else
        quota_add(session, QUOTA_EVENTS, 1);
    return result;
}

CUresult serve_cuIpcOpenEventHandle(struct session *session,
                                    const struct wire_cuIpcOpenEventHandle *in,
                                    struct wire_cuIpcOpenEventHandle_reply *ret_out)
{
    struct ipc_item item;
    CUresult result =
        ipc_resolve(session, IPC_EVENT, (struct ipc_key){{in->key0, in->key1}}, &item);

    if (result != CUDA_SUCCESS)
        return result;
    result = add_event(session, in->hEvent, item.share);
    if (result != CUDA_SUCCESS) {
        session_enter(session, item.share->device);
        ipc_share_unref(session->server, item.share);
        return result;
    }
    ret_out->device = (uint32_t)item.share->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult serve_cuEventQuery(struct session *session, const struct wire_cuEventQuery *in,
                            struct event *hEvent, struct wire_cuEventQuery_reply *ret_out)
{
    CUevent last = event_driver(hEvent);
    CUresult result = session_enter(session, hEvent->device);

    (void)in;
    if (result == CUDA_SUCCESS)
        result = last ? driver.cuEventQuery(last) : CUDA_ERROR_INVALID_HANDLE;
    ret_out->done = result == CUDA_SUCCESS;
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}
