/* SPDX-License-Identifier: Apache-2.0 */
/* The stream subsystem's part of the server and of a session. */
#include "stream_state.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "feature.h"
#include "host_wait.h"
#include "idle.h"
#include "memory.h"

/* The lock keeps the streams alive, and with them the driver's. */
static void visit_busy_streams(const struct session *session, const struct device *device,
                               idle_visit *visit, void *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->streams->lock);

    list_for_each (struct stream, stream, session_device_streams(session, device), link) {
        if (stream->device == device && stream_is_busy(stream))
            visit(context, stream->driver);
    }
}

static const struct idle_source idle_source = {visit_busy_streams, streams_progress, streams_poll};

int server_streams_init(struct server *server)
{
    server->streams = calloc(1, sizeof(*server->streams));
    if (!server->streams)
        return -ENOMEM;
    list_init(&server->streams->observers);
    idle_register(server, &idle_source);
    server->streams->no_flow_control = feature_is_off(FEATURE_FLOW_CONTROL);
    memory_set_guard(server, host_waits_in);
    return 0;
}

void server_streams_fini(struct server *server)
{
    free(server->streams);
}

void server_streams_observe(struct server *server, struct stream_observer *observer)
{
    list_append(&server->streams->observers, &observer->link);
}

static struct list *observers_of(const struct stream *stream)
{
    return &stream->session->server->streams->observers;
}

void streams_announce_ready(struct stream *stream)
{
    list_for_each (struct stream_observer, observer, observers_of(stream), link) {
        if (observer->ready)
            observer->ready(stream);
    }
}

int streams_announce_creation(struct stream *stream)
{
    int error = 0;

    list_for_each (struct stream_observer, observer, observers_of(stream), link) {
        if (observer->created && !error)
            error = observer->created(stream);
    }
    return error;
}

void streams_announce_end(struct stream *stream)
{
    list_for_each (struct stream_observer, observer, observers_of(stream), link) {
        if (observer->closing)
            observer->closing(stream);
    }
}

int session_streams_init(struct session *session)
{
    struct session_streams *streams = calloc(1, sizeof(*streams));

    if (!streams)
        return -ENOMEM;
    pthread_mutex_init(&streams->lock, NULL);
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        list_init(&streams->of_device[i]);
    list_init(&streams->ended);
    list_init(&streams->host_waits);
    session->streams = streams;
    return 0;
}

void session_streams_fini(struct session *session)
{
    free(session->streams);
}

struct list *session_device_streams(const struct session *session, const struct device *device)
{
    return &session->streams->of_device[device->ordinal];
}
