/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clearing up behind a client. However it ended, its streams first come to rest: memory under a
 * running kernel must not go away, for that would be a fault, and a fault ends every client.
 */
#include "session_end.h"

#include <time.h>

#include "array.h"
#include "blob.h"
#include "cleanup.h"
#include "clock.h"
#include "device_printf.h"
#include "fault.h"
#include "graph.h"
#include "host_wait.h"
#include "ipc_share.h"
#include "log.h"
#include "memory.h"
#include "objects.h"
#include "server.h"
#include "stream.h"
#include "vmm.h"
#include "worker.h"

#define DRAIN_PAUSE_NS_MIN (50 * NS_PER_US)
#define DRAIN_PAUSE_NS_MAX (5 * NS_PER_MS)
#define DRAIN_WARN_NS (5 * NS_PER_SEC)

static bool device_is_quiet(struct session *session, unsigned index)
{
    const struct device *device = &session->server->devices.device[index];

    list_for_each(struct stream, stream, &session->device[index].streams, link)
    {
        if (!stream->driver || session_enter(session, device) != CUDA_SUCCESS)
            continue;
        CUresult result = driver.cuStreamQuery(stream->driver);
        worker_check(session, result);
        if (result == CUDA_ERROR_NOT_READY)
            return false;
    }
    return true;
}

static bool is_quiet(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (!device_is_quiet(session, i))
            return false;
    }
    return true;
}

static void warn_of_long_work(struct session *session)
{
    char kernel[128];

    session_last_kernel(session, kernel, sizeof(kernel));
    log_line("Client " CLIENT_FORMAT " has exited, but its work still runs (last kernel: %s)",
             CLIENT_ARGS(session), kernel);
}

static void drain(struct session *session)
{
    struct timespec pause = {.tv_nsec = DRAIN_PAUSE_NS_MIN};
    uint64_t warn_at = clock_ns() + DRAIN_WARN_NS;
    bool warned = false;

    for (;;) {
        host_waits_release_all(session);
        if (is_quiet(session) || session->server->faulted)
            break;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < (long)DRAIN_PAUSE_NS_MAX)
            pause.tv_nsec *= 2;
        if (!warned && clock_ns() > warn_at) {
            warned = true;
            warn_of_long_work(session);
            session->abandoned = true;
            server_notify(session->server);
        }
    }
    session->abandoned = false;
}

static void destroy_streams(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        struct session_device *home = &session->device[i];
        session_visit(session, &session->server->devices.device[i]);
        list_for_each_safe(struct stream, stream, &home->streams, link)
        {
            list_remove(&stream->link);
            stream_destroy(stream);
        }
    }
    sm_shares_close_all(session);
}

static void destroy_graphs(struct session *session)
{
    list_for_each_safe(struct graph, graph, &session->graphs, link)
    {
        session_enter(session, graph->device);
        graph_destroy(graph);
    }
}

/* Nothing of the client runs any more. */
static void give_libraries_back(struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (list_empty(&session->device[i].parked))
            continue;
        session_enter(session, &session->server->devices.device[i]);
        module_cache_put_parked(&session->server->modules, &session->device[i].parked);
    }
}

static void destroy_object(void *context, uint64_t handle, void *object)
{
    struct session *session = context;

    switch (handle_type(handle)) {
    case WIRE_EVENT:
        session_enter(session, ((struct event *)object)->device);
        event_destroy(session, object);
        break;
    case WIRE_MODULE:
        session_remove(session, WIRE_MODULE, handle);
        module_destroy(session, object); /* and its functions */
        break;
    case WIRE_ARRAY:
        array_unref(session, object);
        break;
    case WIRE_TEXTURE:
        texture_destroy(session, object);
        break;
    default:
        break; /* streams are gone already, functions go with their modules */
    }
}

void session_clean_up(struct session *session)
{
    if (session->window)
        drain(session);
    device_printf_forget(session);
    destroy_streams(session);
    if (session->window) {
        destroy_graphs(session);
        vmm_release_all(session);
        handles_for_each(&session->objects, destroy_object, session);
        give_libraries_back(session);
        ipc_close_all(session);
        memory_release_all(session);
        ipc_withdraw_all(session);
        log_line("Client " CLIENT_FORMAT ": %llu launches, %llu copies of %llu MiB together",
                 CLIENT_ARGS(session), (unsigned long long)session->launches,
                 (unsigned long long)session->copies,
                 (unsigned long long)(session->copied_bytes >> 20));
        log_line("Client " CLIENT_FORMAT " exit", CLIENT_ARGS(session));
    }
    host_waits_forget_all(session);
    blob_drop_all(session);
}
