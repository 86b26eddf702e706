/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases a client's resources. Its streams must become idle first: freeing memory under a running
 * kernel would fault, and a fault ends every client.
 */
#include "session_end.h"

#include <time.h>

#include "array.h"
#include "blob.h"
#include "clock.h"
#include "copy.h"
#include "device_printf.h"
#include "event.h"
#include "graph.h"
#include "host_wait.h"
#include "ipc_share.h"
#include "launch_record.h"
#include "link_job.h"
#include "log.h"
#include "memory.h"
#include "server_life.h"
#include "server_module.h"
#include "session_life.h"
#include "stream.h"
#include "vmm.h"

#define DRAIN_PAUSE_NS_MIN (50 * NS_PER_US)
#define DRAIN_PAUSE_NS_MAX (5 * NS_PER_MS)
#define LONG_PAUSE_NS (100 * NS_PER_MS) /* for work that may never end */
#define DRAIN_WARN_NS (5 * NS_PER_SEC)

static void warn_of_long_work(struct session *session)
{
    char kernel[128];

    launch_last_kernel(session, kernel, sizeof(kernel));
    session_log_event(session, 0,
                      " has exited, but its work still runs (the kernel that it launched last: %s)",
                      kernel);
}

static void drain(struct session *session)
{
    struct timespec pause = {.tv_nsec = DRAIN_PAUSE_NS_MIN};
    uint64_t warn_at = clock_ns() + DRAIN_WARN_NS;
    bool warned = false;

    for (;;) {
        if (host_waits_release_all(session))
            pause.tv_nsec = DRAIN_PAUSE_NS_MIN;
        if (streams_are_idle(session) || session->server->faulted)
            break;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < (long)DRAIN_PAUSE_NS_MAX)
            pause.tv_nsec *= 2;
        if (!warned && clock_ns() > warn_at) {
            warned = true;
            warn_of_long_work(session);
            pause.tv_nsec = LONG_PAUSE_NS;
            session->life->abandoned = true;
            server_notify(session->server);
        }
    }
    session->life->abandoned = false;
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
        texture_end(session, object);
        break;
    case WIRE_LINK:
        link_destroy(session, object);
        break;
    default:
        break; /* streams are gone already, functions go with their modules */
    }
}

static void log_end(const struct session *session)
{
    uint64_t launches = launch_count(session), copies, bytes;

    copy_counters(session, &copies, &bytes);
    session_log(session, ": %llu launch%s, %llu cop%s of %llu MiB together",
                (unsigned long long)launches, launches == 1 ? "" : "es", (unsigned long long)copies,
                copies == 1 ? "y" : "ies", (unsigned long long)(bytes >> 20));
    if (session->life->pool_stays)
        session_log(session, ": it was with workers of the pool %llu times",
                    (unsigned long long)session->life->pool_stays);
    log_line("Status of client " CLIENT_FORMAT " is INACTIVE", CLIENT_ARGS(session));
    session_log(session, " exit");
}

void session_clean_up(struct session *session)
{
    if (session->window)
        drain(session);
    activity_set_stage(&session->activity, "its end");
    device_printf_forget(session);
    streams_destroy_all(session);
    if (session->window) {
        graphs_destroy_all(session);
        vmm_release_all(session);
        handles_for_each(&session->objects, destroy_object, session);
        module_put_parked(session);
        memory_release_all(session);
        ipc_withdraw_all(session);
        log_end(session);
    }
    host_waits_forget_all(session);
    blob_drop_all(session);
}
