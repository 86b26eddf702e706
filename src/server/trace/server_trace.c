/* SPDX-License-Identifier: Apache-2.0 */
/* See server_trace.h. */
#include "server_trace.h"

#include <pthread.h>
#include <stdlib.h>

#include "cleanup.h"
#include "clock.h"
#include "server_life.h"
#include "session_life.h"
#include "text.h"

void server_trace_release(struct server *server, struct trace *trace)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    if (--trace->users)
        return;
    atomic_store_explicit(&trace->file.header->done, 1, memory_order_release);
    trace_file_close(&trace->file);
    free(trace);
}

struct trace *server_trace_acquire(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    struct trace *trace = server->life->trace;

    if (trace)
        trace->users++;
    return trace;
}

bool server_is_traced(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    return server->life->trace != NULL;
}

static struct trace *open_trace(const struct server_trace *order, int fd)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    if (!trace || trace_file_open(&trace->file, fd, TRACE_RECORDS_MAX)) {
        free(trace);
        return NULL;
    }
    atomic_init(&trace->end_ns, clock_ns() + order->seconds * NS_PER_SEC);
    trace->number = order->header.request;
    trace->pid = order->pid;
    trace->users = 1;
    return trace;
}

/* The threads follow their limits, and then see the trace, or its end. */
static void tell_sessions(struct server *server)
{
    list_for_each (struct session, session, &server->sessions, link) {
        atomic_fetch_or(&session->limits.changed, CHANGED_LIMITS);
        if (session->phase == SESSION_SERVING)
            session_kick(session);
    }
}

bool server_trace_begin(struct server *server, const struct server_trace *order, int fd)
{
    struct trace *trace = server->life->trace ? NULL : open_trace(order, fd);

    if (!trace)
        return false;
    text_copy(trace->file.header->device_name, sizeof(trace->file.header->device_name),
              server->devices.device[0].record.name);
    trace->file.header->begin_ns = clock_ns();
    atomic_store_explicit(&trace->file.header->magic, TRACE_MAGIC, memory_order_release);
    pthread_mutex_lock(&server->lock);
    server->life->trace = trace;
    pthread_mutex_unlock(&server->lock);
    tell_sessions(server);
    return true;
}

bool server_trace_is_over(const struct trace *trace)
{
    return clock_ns() >= atomic_load_explicit(&trace->end_ns, memory_order_relaxed);
}

void server_trace_stop(struct server *server, uint32_t number)
{
    struct trace *trace = server->life->trace;

    if (!trace || trace->number != number)
        return;
    atomic_store_explicit(&trace->end_ns, 0, memory_order_relaxed);
    server_trace_tick(server);
}

void server_trace_tick(struct server *server)
{
    struct trace *trace = server->life->trace;

    if (!trace || !server_trace_is_over(trace))
        return;
    pthread_mutex_lock(&server->lock);
    server->life->trace = NULL;
    pthread_mutex_unlock(&server->lock);
    tell_sessions(server);
    server_trace_release(server, trace);
}
