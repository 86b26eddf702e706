/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. Work on the device is recorded when its events have been reached, in the order of
 * submission. */
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "channel.h"
#include "cleanup.h"
#include "clock.h"
#include "copy_batch.h"
#include "function.h"
#include "server_life.h"
#include "session_life.h"
#include "shared_copy_stream.h"
#include "shm.h"
#include "stream.h"
#include "text.h"
#include "trace_format.h"

/* Limit of unfinished work; further work is not timed. */
#define PENDING_MAX 2048u

/* Timeout of the wait for work at the end of a trace. */
#define LAST_WORK_NS (500 * NS_PER_MS)

struct trace {
    struct trace_header *file;
    atomic_uint_fast64_t end_ns; /* the main thread's to write */
    uint32_t number;             /* the daemon's, for this trace */
    int32_t pid;                 /* 0 = all clients */
    unsigned users; /* under the server's lock: the sessions, and the server until the end */
};

/* The base of the device's time, by an event. */
struct time_base {
    CUevent event; /* NULL: none yet */
    uint64_t ns;   /* when it was reached */
};

struct pending_work {
    struct trace_record record;
    const struct time_base *base;
    CUevent before, behind;
};

struct session_trace {
    struct session *session;
    struct trace *trace;
    struct time_base bases[DEVICE_CONTEXTS_MAX];
    struct pending_work pending[PENDING_MAX]; /* a ring */
    unsigned first, count;
};

/* ---- the server's part ---- */

static void release_trace(struct server *server, struct trace *trace)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    if (--trace->users)
        return;
    atomic_store_explicit(&trace->file->done, 1, memory_order_release);
    shm_unmap(trace->file, TRACE_FILE_SIZE);
    free(trace);
}

static struct trace *acquire(struct server *server)
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
    void *file;

    if (!trace || shm_check(fd, TRACE_FILE_SIZE) || shm_map(fd, TRACE_FILE_SIZE, NULL, 0, &file)) {
        free(trace);
        return NULL;
    }
    trace->file = file;
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
    text_copy(trace->file->device_name, sizeof(trace->file->device_name),
              server->devices.device[0].record.name);
    trace->file->begin_ns = clock_ns();
    atomic_store_explicit(&trace->file->magic, TRACE_MAGIC, memory_order_release);
    pthread_mutex_lock(&server->lock);
    server->life->trace = trace;
    pthread_mutex_unlock(&server->lock);
    tell_sessions(server);
    return true;
}

static bool is_over(struct trace *trace)
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

    if (!trace || !is_over(trace))
        return;
    pthread_mutex_lock(&server->lock);
    server->life->trace = NULL;
    pthread_mutex_unlock(&server->lock);
    tell_sessions(server);
    release_trace(server, trace);
}

/* ---- records ---- */

static void init_record(const struct session_trace *trace, struct trace_record *record)
{
    memset(record, 0, sizeof(*record));
    record->pid = trace->session->identity.pid;
    record->id = trace->session->id;
    record->uid = trace->session->identity.uid;
}

/* Partner: the front end, which takes a record whose kind is set as complete. */
static void write_record(struct session_trace *trace, unsigned kind,
                         const struct trace_record *record)
{
    struct trace_header *file = trace->trace->file;
    uint32_t at = atomic_fetch_add_explicit(&file->next, 1, memory_order_relaxed);
    struct trace_record *place = &trace_records(file)[at];

    if (at >= TRACE_RECORDS_MAX) {
        atomic_store_explicit(&file->next, TRACE_RECORDS_MAX + 1, memory_order_relaxed);
        return;
    }
    memcpy((char *)place + sizeof(place->kind), (const char *)record + sizeof(record->kind),
           sizeof(*record) - sizeof(record->kind));
    atomic_store_explicit(&place->kind, kind, memory_order_release);
}

static void write_client(struct session_trace *trace)
{
    const struct server_identity *identity = &trace->session->identity;
    struct trace_record record;

    init_record(trace, &record);
    text_format(record.name, sizeof(record.name), "%.*s", (int)sizeof(record.name) - 1,
                identity->command);
    write_record(trace, TRACE_CLIENT, &record);
}

static void count_lost(struct session_trace *trace)
{
    atomic_fetch_add_explicit(&trace->trace->file->lost, 1, memory_order_relaxed);
}

/* ---- events ---- */

/* The watchdog's stream is idle, so its event is reached at once. */
static bool make_base(const struct device *device, struct time_base *base)
{
    uint64_t before;

    if (base->event)
        return true;
    if (driver.cuEventCreate(&base->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
        base->event = NULL;
        return false;
    }
    before = clock_ns();
    if (driver.cuEventRecord(base->event, device->watch) != CUDA_SUCCESS ||
        driver.cuEventSynchronize(base->event) != CUDA_SUCCESS) {
        driver.cuEventDestroy_v2(base->event);
        base->event = NULL;
        return false;
    }
    base->ns = before + (clock_ns() - before) / 2;
    return true;
}

static CUevent record_event(const struct stream *stream)
{
    CUevent event;

    if (driver.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
        return NULL;
    if (driver.cuEventRecord(event, stream->driver) == CUDA_SUCCESS)
        return event;
    driver.cuEventDestroy_v2(event);
    return NULL;
}

/* ---- commands ---- */

static void describe_kernel(struct session_trace *trace, const struct ring_message *message,
                            struct traced_command *command)
{
    struct wire_cuLaunchKernelEx in;
    const struct function *function;

    if (!decode_cuLaunchKernelEx(message, message->size, &in))
        return;
    function = session_lookup(trace->session, WIRE_FUNCTION, in.f);
    if (!function)
        return;
    command->stream = session_lookup(trace->session, WIRE_STREAM, in.hStream);
    command->kind = TRACE_KERNEL;
    memcpy(command->grid, in.shape, sizeof(command->grid));
    memcpy(command->block, in.shape + 3, sizeof(command->block));
    text_format(command->name, sizeof(command->name), "%.*s", (int)sizeof(command->name) - 1,
                function->name);
}

static void describe_graph(struct session_trace *trace, const struct ring_message *message,
                           struct traced_command *command)
{
    struct wire_cuGraphLaunch in;

    if (!decode_cuGraphLaunch(message, message->size, &in))
        return;
    command->stream = session_lookup(trace->session, WIRE_STREAM, in.hStream);
    command->kind = TRACE_GRAPH;
    text_copy(command->name, sizeof(command->name), "graph");
}

static void describe_memset(struct session_trace *trace, const struct ring_message *message,
                            struct traced_command *command)
{
    struct wire_fnMemset in;

    if (!decode_fnMemset(message, message->size, &in))
        return;
    command->stream = session_lookup(trace->session, WIRE_STREAM, in.hStream);
    command->kind = TRACE_MEMSET;
    command->bytes = in.width * in.height * in.element_size;
    text_copy(command->name, sizeof(command->name), "memset");
}

static void describe_copy(struct session_trace *trace, uint64_t stream, uint64_t bytes,
                          struct traced_command *command)
{
    command->stream = session_lookup(trace->session, WIRE_STREAM, stream);
    command->kind = TRACE_COPY;
    command->bytes = bytes;
    text_copy(command->name, sizeof(command->name), "copy");
}

/* Describes the device work of the command, before it runs. */
static void describe_work(struct session_trace *trace, const struct ring_message *message,
                          struct traced_command *command)
{
    struct wire_cuMemcpyAsync copy;
    struct wire_cuMemcpyHtoDAsync_v2 small;
    struct wire_cuMemcpy3DAsync_v2 box;
    struct wire_fnCopyUp up;
    struct wire_fnCopyBatch batch;

    if (command->op == WIRE_cuLaunchKernelEx)
        describe_kernel(trace, message, command);
    else if (command->op == WIRE_cuGraphLaunch)
        describe_graph(trace, message, command);
    else if (command->op == WIRE_fnMemset)
        describe_memset(trace, message, command);
    else if (command->op == WIRE_cuMemcpyAsync &&
             decode_cuMemcpyAsync(message, message->size, &copy))
        describe_copy(trace, copy.hStream, copy.ByteCount, command);
    else if (command->op == WIRE_cuMemcpyHtoDAsync_v2 &&
             decode_cuMemcpyHtoDAsync_v2(message, message->size, &small))
        describe_copy(trace, small.hStream, small.data_size, command);
    else if (command->op == WIRE_cuMemcpy3DAsync_v2 &&
             decode_cuMemcpy3DAsync_v2(message, message->size, &box))
        describe_copy(trace, box.hStream, box.width * box.height * box.depth, command);
    else if (command->op == WIRE_fnCopyUp && decode_fnCopyUp(message, message->size, &up))
        describe_copy(trace, up.hStream, up.ByteCount, command);
    else if (command->op == WIRE_fnCopyBatch && decode_fnCopyBatch(message, message->size, &batch))
        describe_copy(trace, batch.hStream, copy_batch_bytes(&batch), command);
}

/* A copy in the shared copy stream is not in the client's stream. */
static bool can_be_timed(const struct session_trace *trace, const struct traced_command *command)
{
    return command->stream && command->stream->driver && trace->count < PENDING_MAX &&
           !(command->op == WIRE_fnCopyUp && shared_copy_stream_usable(command->stream));
}

void session_trace_before(struct session_trace *trace, const struct ring_message *message,
                          struct traced_command *ret_command)
{
    struct traced_command *command = ret_command;

    *command = (struct traced_command){.op = channel_kind_op(message->kind)};
    describe_work(trace, message, command);
    /* The stream waits for its predecessors first, so that these waits do not count as work. */
    if (can_be_timed(trace, command) && stream_begin_work(command->stream) == CUDA_SUCCESS &&
        make_base(command->stream->device, &trace->bases[command->stream->device->index]))
        command->before = record_event(command->stream);
    if (command->kind && !command->before)
        count_lost(trace);
    command->begin_ns = clock_ns();
}

static void add_pending(struct session_trace *trace, const struct traced_command *command,
                        uint64_t now)
{
    struct pending_work *work = &trace->pending[(trace->first + trace->count) % PENDING_MAX];
    CUevent behind = record_event(command->stream);

    if (!behind) {
        driver.cuEventDestroy_v2(command->before);
        count_lost(trace);
        return;
    }
    init_record(trace, &work->record);
    work->record.kind = command->kind;
    work->record.device = (uint32_t)command->stream->device->ordinal;
    work->record.stream = (uintptr_t)command->stream->word;
    work->record.submitted_ns = now;
    work->record.bytes = command->bytes;
    memcpy(work->record.grid, command->grid, sizeof(command->grid));
    memcpy(work->record.block, command->block, sizeof(command->block));
    text_copy(work->record.name, sizeof(work->record.name), command->name);
    work->base = &trace->bases[command->stream->device->index];
    work->before = command->before;
    work->behind = behind;
    trace->count++;
}

void session_trace_after(struct session_trace *trace, const struct traced_command *command)
{
    const char *name = wire_op_name(command->op);
    struct trace_record record;

    init_record(trace, &record);
    record.submitted_ns = record.begin_ns = command->begin_ns;
    record.end_ns = clock_ns();
    text_copy(record.name, sizeof(record.name), name ? name : "unknown");
    write_record(trace, TRACE_COMMAND, &record);
    if (command->before)
        add_pending(trace, command, record.end_ns);
    if (trace->count >= PENDING_MAX / 2)
        session_trace_collect(trace);
}

void session_trace_range(struct session_trace *trace, const struct ring_message *message)
{
    struct trace_record record;
    struct wire_fnRange in;

    if (!decode_fnRange(message, message->size, &in))
        return;
    init_record(trace, &record);
    record.stream = in.thread;
    record.begin_ns = in.begin_ns;
    record.end_ns = in.end_ns;
    memcpy(record.name, in.name, in.name_size);
    write_record(trace, TRACE_RANGE, &record);
}

/* ---- work that is done ---- */

static bool find_times(struct pending_work *work)
{
    float since_base, took;

    if (driver.cuEventElapsedTime_v2(&since_base, work->base->event, work->before) !=
            CUDA_SUCCESS ||
        driver.cuEventElapsedTime_v2(&took, work->before, work->behind) != CUDA_SUCCESS)
        return false;
    work->record.begin_ns = work->base->ns + (uint64_t)((double)since_base * 1e6);
    work->record.end_ns = work->record.begin_ns + (uint64_t)((double)took * 1e6);
    return true;
}

static void take_first(struct session_trace *trace, bool done)
{
    struct pending_work *work = &trace->pending[trace->first];
    struct trace_record *record = &work->record;

    if (done && find_times(work))
        write_record(trace, record->kind, record);
    else
        count_lost(trace);
    driver.cuEventDestroy_v2(work->before);
    driver.cuEventDestroy_v2(work->behind);
    trace->first = (trace->first + 1) % PENDING_MAX;
    trace->count--;
}

void session_trace_collect(struct session_trace *trace)
{
    while (trace->count &&
           driver.cuEventQuery(trace->pending[trace->first].behind) != CUDA_ERROR_NOT_READY)
        take_first(trace, true);
}

static void collect_last(struct session_trace *trace)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    uint64_t end = clock_ns() + LAST_WORK_NS;

    session_trace_collect(trace);
    while (trace->count && clock_ns() < end && !trace->session->stop) {
        nanosleep(&pause, NULL);
        session_trace_collect(trace);
    }
    while (trace->count)
        take_first(trace, false);
}

/* ---- the session's part ---- */

static bool is_wanted(const struct trace *trace, const struct session *session)
{
    return !trace->pid || trace->pid == session->identity.pid ||
           (!session->identity.pid && (uint32_t)trace->pid == session->id);
}

struct session_trace *session_trace_begin(struct session *session)
{
    struct trace *trace = acquire(session->server);
    struct session_trace *made;

    if (!trace)
        return NULL;
    made = is_wanted(trace, session) ? calloc(1, sizeof(*made)) : NULL;
    if (!made) {
        release_trace(session->server, trace);
        return NULL;
    }
    made->session = session;
    made->trace = trace;
    write_client(made);
    channel_server_set_traced(session->channel, true);
    return made;
}

bool session_trace_goes_on(const struct session_trace *trace)
{
    return !is_over(trace->trace);
}

void session_trace_end(struct session_trace *trace)
{
    struct server *server = trace->session->server;

    channel_server_set_traced(trace->session->channel, false);
    collect_last(trace);
    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++)
        if (trace->bases[i].event)
            driver.cuEventDestroy_v2(trace->bases[i].event);
    release_trace(server, trace->trace);
    free(trace);
}
