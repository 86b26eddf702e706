/* SPDX-License-Identifier: Apache-2.0 */
/* The launch subsystem's part of the server, of a session, of a stream and of a device. */
#include "launch_state.h"

#include <errno.h>
#include <stdlib.h>

#include "context_hold.h"
#include "fence_counter.h"
#include "fence_kernel.h"
#include "fill_kernel.h"
#include "launch.h"
#include "launch_record.h"

/* ---- streams ---- */

static int on_created(struct stream *stream)
{
    stream->launch = calloc(1, sizeof(*stream->launch));
    return stream->launch ? 0 : -ENOMEM;
}

/* The nodes of graph batches have the priority that their stream had. */
static void on_ready(struct stream *stream)
{
    struct graph_batches *batches = &stream->launch->graph_batches;

    graph_batches_fini(batches);
    batches->device = stream->device;
    batches->priorities = (struct node_priorities){
        .usual = stream->granted_priority,
        .urgent = stream->device->record.priority_greatest,
    };
}

static void on_closing(struct stream *stream)
{
    struct stream_launch *launch = stream->launch;

    if (!launch)
        return;
    graph_batches_fini(&launch->graph_batches);
    fence_counters_put_back(stream->device->launch->fence_counters, launch->fence_counter);
    free(launch);
}

/* ---- modules ---- */

/* Graphs of the driver keep a module's functions. */
static void forget_module(struct session *session, const struct module *module)
{
    list_for_each (struct stream, stream, session_device_streams(session, module->device), link)
        graph_batches_forget_module(&stream->launch->graph_batches, module);
}

/* ---- the server ---- */

/* The kernels of the server's own. */
static void load_kernels(struct device *device, const struct launch_options *options)
{
    if (options->no_batching || options->no_fence_kernel)
        return;
    fence_kernel_load(device);
    fill_kernel_load(device);
    if (device->launch->fence_kernel && !options->no_fence_counter)
        device->launch->fence_counters = fence_counters_create();
}

int server_launch_init(struct server *server, const struct launch_options *options)
{
    struct server_launch *launch = calloc(1, sizeof(*launch));

    if (!launch)
        return -ENOMEM;
    server->launch = launch;
    launch->no_batching = options->no_batching;
    launch->stream_observer =
        (struct stream_observer){.created = on_created, .ready = on_ready, .closing = on_closing};
    server_streams_observe(server, &launch->stream_observer);
    launch->module_observer.forget = forget_module;
    server_modules_observe(server, &launch->module_observer);
    for (unsigned i = 0; i < server->devices.count; i++) {
        struct device *device = &server->devices.device[i];

        device->launch = calloc(1, sizeof(*device->launch));
        if (!device->launch)
            return -ENOMEM;
        load_kernels(device, options);
        if (!options->no_context_hold)
            context_hold_load(server, device);
    }
    return 0;
}

void server_launch_fini(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        fence_kernel_unload(&server->devices.device[i]);
        fill_kernel_unload(&server->devices.device[i]);
        context_hold_unload(&server->devices.device[i]);
        free(server->devices.device[i].launch);
    }
    free(server->launch);
}

/* ---- a session ---- */

int session_launch_init(struct session *session)
{
    session->launch = calloc(1, sizeof(*session->launch));
    if (!session->launch)
        return -ENOMEM;
    pthread_mutex_init(&session->launch->lock, NULL);
    return 0;
}

void session_launch_fini(struct session *session)
{
    free(session->launch);
}
