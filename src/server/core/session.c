/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every subsystem needs of a session: its handles, its device, and a line in the log.
 */
#include "session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "channel_server.h"
#include "clock.h"
#include "cuda_error.h"
#include "fd.h"
#include "log.h"
#include "server.h"
#include "server_dispatch.h"

/* How many errors a client may log within this time. */
#define LOGGED_ERRORS_MAX 20u
#define LOGGED_ERRORS_NS (10 * NS_PER_SEC)

#define LOG_STAMP_BYTES 120u /* of each line: time, process, client, record */

int session_init(struct session *session, struct server *server,
                 const struct server_identity *identity, uint32_t id)
{
    *session = (struct session){.server = server,
                                .identity = *identity,
                                .id = id,
                                .socket = -1,
                                .phase = SESSION_ATTACHING};
    list_init(&session->link);
    return handles_init(&session->objects, SESSION_HANDLES_MAX) ? -ENOMEM : 0;
}

void session_fini(struct session *session)
{
    handles_fini(&session->objects);
    fd_close(&session->socket);
}

CUresult session_visit(struct session *session, const struct device *device)
{
    if (session->current == device)
        return CUDA_SUCCESS;
    CUresult result = device_enter(device);
    if (result == CUDA_SUCCESS)
        session->current = device;
    return result;
}

CUresult session_enter(struct session *session, const struct device *device)
{
    uint64_t bit = 1ull << device->ordinal;
    CUresult result = session_visit(session, device);

    if (result == CUDA_SUCCESS && !(session->device_mask & bit))
        session->device_mask |= bit;
    return result;
}

const struct device *session_device(const struct session *session, unsigned ordinal)
{
    return &session->server->devices.device[ordinal];
}

const struct device *session_find_device(struct session *session, const char *call, uint32_t index)
{
    const struct devices *devices = &session->server->devices;

    if (index < devices->count)
        return session_device(session, index);
    session_log_error(session, "%s: device %u, there are %u", call, index, devices->count);
    return NULL;
}

CUresult session_put(struct session *session, enum wire_handle kind, uint64_t handle, void *object)
{
    if (handle_type(handle) != kind) {
        session_log_error(session, "new handle %#llx is of another kind",
                          (unsigned long long)handle);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    switch (handles_put(&session->objects, handle, object)) {
    case 0:
        return CUDA_SUCCESS;
    case -ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        session_log_error(session, "new handle %#llx is in use or out of bounds",
                          (unsigned long long)handle);
        return CUDA_ERROR_INVALID_HANDLE;
    }
}

void session_remove(struct session *session, enum wire_handle kind, uint64_t handle)
{
    handles_remove(&session->objects, kind, handle);
}

void session_check(struct session *session, CUresult result)
{
    if (cuda_error_is_fatal(result))
        session->server->on_fatal(session->server, session, result);
}

/* Counts the bytes of a line: false when the client has used up those of a minute, and `ret_last`
 * with the last line. */
static bool may_log_bytes(struct error_budget *error_budget, uint64_t now, uint64_t bytes,
                          bool *ret_last)
{
    uint64_t most = quota(QUOTA_LOG);

    if (now - error_budget->minute_start > 60 * NS_PER_SEC) {
        error_budget->minute_start = now;
        error_budget->bytes = 0;
    }
    if (error_budget->bytes >= most)
        return false;
    error_budget->bytes += bytes;
    *ret_last |= error_budget->bytes >= most;
    return true;
}

bool error_budget_take(struct error_budget *error_budget, uint64_t bytes, bool *ret_last)
{
    uint64_t now = clock_ns();

    if (now - error_budget->window_start > LOGGED_ERRORS_NS) {
        error_budget->window_start = now;
        error_budget->count = 0;
    }
    error_budget->count++;
    *ret_last = error_budget->count == LOGGED_ERRORS_MAX;
    return error_budget->count <= LOGGED_ERRORS_MAX &&
           may_log_bytes(error_budget, now, bytes, ret_last);
}

void session_log_error(struct session *session, const char *format, ...)
{
    bool last;
    va_list arguments;

    session->since_error = 0;
    va_start(arguments, format);
    vsnprintf(session->reason, sizeof(session->reason), format, arguments);
    va_end(arguments);
    if (!error_budget_take(&session->error_budget, strlen(session->reason) + LOG_STAMP_BYTES,
                           &last))
        return;
    session_log_event(session, 0, ": %s%s", session->reason,
                      last ? " (no more of its mistakes are logged for a while)" : "");
}

/* ---- what the generated dispatcher asks of a session ---- */

void session_no_handle(struct session *session, const char *call, const char *argument,
                       uint64_t handle)
{
    session_log_error(
        session, "%s: %s: %#llx (index %u, generation %u) does not exist, or no longer does", call,
        argument, (unsigned long long)handle, handle_index(handle), handle_generation(handle));
}

void session_async_failed(struct session *session, const char *call, CUresult status)
{
    if (session->since_error)
        session_log_error(session, "%s failed: %s", call, driver_error_name(status));
    channel_server_defer(session->channel, status);
    session_check(session, status);
}

bool session_reply(struct session *session, int slot, CUresult status, const void *data,
                   uint32_t size)
{
    session_check(session, status);
    return !channel_server_reply(session->channel, slot, status, data, size);
}
