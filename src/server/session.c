/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: making them, ending them, and what the parts of a session have in common.
 */
#include "session.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "attach_client.h"
#include "cleanup.h"
#include "clock.h"
#include "fd.h"
#include "futex.h"
#include "log.h"
#include "server.h"
#include "server_dispatch.h"
#include "session_end.h"
#include "text.h"
#include "worker.h"

/* Sentences a client may cause in the log within this time. */
#define LOGGED_ERRORS_MAX 20u
#define LOGGED_ERRORS_NS (10 * NS_PER_SEC)

static void *session_thread(void *context)
{
    struct session *session = context;

    if (attach_client(session)) {
        session->phase = SESSION_SERVING;
        session->window_taken = true;
        server_notify(session->server);
        worker_run(session);
    }
    session_clean_up(session);
    session->phase = SESSION_DONE;
    server_notify(session->server);
    return NULL;
}

static void init_lists(struct session *session)
{
    list_init(&session->link);
    list_init(&session->blobs);
    list_init(&session->graphs);
    list_init(&session->ipc_names);
    list_init(&session->ipc_imports);
    list_init(&session->waits);
    list_init(&session->sm_shares);
    ranges_init(&session->extents);
    ranges_init(&session->reservations);
    ranges_init(&session->mappings);
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        list_init(&session->device[i].streams);
        list_init(&session->device[i].parked);
    }
}

struct session *session_create(struct server *server, const struct server_client *who)
{
    struct session *session = calloc(1, sizeof(*session));

    if (!session || handles_init(&session->objects, SESSION_HANDLES_MAX)) {
        free(session);
        return NULL;
    }
    session->server = server;
    session->who = *who;
    session->id = ++server->next_id;
    session->socket = -1;
    session->phase = SESSION_ATTACHING;
    pthread_mutex_init(&session->kernel_lock, NULL);
    init_lists(session);
    session_set_limits(session, &who->limits);
    return session;
}

void session_set_limits(struct session *session, const struct server_limits *limits)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        session->memory_limit[i] = limits->memory_limit[i];
    if (session->sm_centipercent == limits->sm_centipercent &&
        session->priority == limits->priority)
        return;
    session->sm_centipercent = limits->sm_centipercent;
    session->priority = limits->priority;
    session->limits_changed = true;
}

int session_start(struct session *session)
{
    return -pthread_create(&session->thread, NULL, session_thread, session);
}

void session_destroy(struct session *session)
{
    if (!session)
        return;
    watch_destroy(session->hang_up);
    if (session->distrusted)
        windows_retire(&session->server->windows, session->window);
    else
        windows_put_back(&session->server->windows, session->window);
    channel_server_destroy(session->channel);
    handles_fini(&session->objects);
    fd_close(&session->socket);
    free(session);
}

/* The channel comes into being while others may already want to reach it. */
static struct channel_server *reach_channel(struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    return session->channel;
}

void session_kick(struct session *session)
{
    struct channel_server *channel = reach_channel(session);

    if (channel)
        channel_server_kick(channel);
}

void session_stop(struct session *session, CUresult status)
{
    int none = 0;

    atomic_compare_exchange_strong(&session->end_status, &none, (int)status);
    session->stop = true;
    session_kick(session);
    /* A thread that is sending to a client that does not read must come back, too. */
    if (status == CUDA_SUCCESS)
        shutdown(session->socket, SHUT_RDWR);
}

/* Nobody knows on which words the client's threads sleep, so all of them are woken. */
static void wake_all_fences(const struct window *window)
{
    for (uint32_t word = 0; word < GPU_REGION_FENCES; word++)
        futex_wake(window_fence(window, word), INT_MAX);
}

void session_fail_locked(struct session *session, CUresult status)
{
    if (!session->channel)
        return;
    channel_server_fail(session->channel, status);
    if (session->phase == SESSION_SERVING)
        wake_all_fences(session->window);
}

void session_fail(struct session *session, CUresult status)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);

    session_fail_locked(session, status);
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

const struct device *session_find_device(struct session *session, const char *call, uint32_t index)
{
    const struct devices *devices = &session->server->devices;

    if (index < devices->count)
        return &devices->device[index];
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

void session_launched(struct session *session, unsigned count, uint64_t function,
                      const char *kernel)
{
    /* Nobody else writes it, so this need not be one step. */
    uint_fast64_t so_far = atomic_load_explicit(&session->launches, memory_order_relaxed);

    atomic_store_explicit(&session->launches, so_far + count, memory_order_relaxed);
    if (session->last_function == function)
        return;
    session->last_function = function;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->kernel_lock);
    text_copy(session->last_kernel, sizeof(session->last_kernel), kernel);
}

void session_last_kernel(struct session *session, char *ret_name, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->kernel_lock);

    text_copy(ret_name, size, session->last_kernel[0] ? session->last_kernel : "(none)");
}

/* Counts one: false when the client has had its share for now, and `ret_last` on the last one. */
static bool may_log_error(struct error_budget *error_budget, bool *ret_last)
{
    uint64_t now = clock_ns();

    if (now - error_budget->window_start > LOGGED_ERRORS_NS) {
        error_budget->window_start = now;
        error_budget->count = 0;
    }
    error_budget->count++;
    *ret_last = error_budget->count == LOGGED_ERRORS_MAX;
    return error_budget->count <= LOGGED_ERRORS_MAX;
}

void session_log_error(struct session *session, const char *format, ...)
{
    char text[512];
    bool last;
    va_list arguments;

    session->error_logged = true;
    if (!may_log_error(&session->error_budget, &last))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_line("Client " CLIENT_FORMAT ": %s%s", CLIENT_ARGS(session), text,
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
    if (!session->error_logged)
        session_log_error(session, "%s failed: %s", call, driver_error_name(status));
    channel_server_defer(session->channel, status);
    worker_check(session, status);
}

bool session_reply(struct session *session, int slot, CUresult status, const void *data,
                   uint32_t size)
{
    worker_check(session, status);
    return !channel_server_reply(session->channel, slot, status, data, size);
}
