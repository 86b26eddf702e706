/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that several clients use: each client has a handle of its own for the one event of the
 * driver. Where the clients work in different contexts of a device, event.c records them.
 */
#include <stdlib.h>

#include "event.h"
#include "ipc_share.h"
#include "server_dispatch.h"
#include "stream_state.h"

static CUresult share_event(struct event *event)
{
    if (event->share)
        return CUDA_SUCCESS;
    if (!event->driver)
        return CUDA_ERROR_INVALID_HANDLE;
    event->share = ipc_share_create(
        &(struct ipc_share){.kind = IPC_EVENT, .device = event->device, .event = event->driver});
    return event->share ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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
    *event = (struct event){.driver = share->event, .device = share->device, .share = share};
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
    CUresult result = session_enter(session, hEvent->device);

    (void)in;
    if (result == CUDA_SUCCESS)
        result = hEvent->driver ? driver.cuEventQuery(hEvent->driver) : CUDA_ERROR_INVALID_HANDLE;
    ret_out->done = result == CUDA_SUCCESS;
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}
