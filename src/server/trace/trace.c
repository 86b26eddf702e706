/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. Work on the device is recorded when its events have been reached, in the order of
 * submission. */
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "channel.h"
#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "graph.h"
#include "profile.h"
#include "server_life.h"
#include "server_trace.h"
#include "session_life.h"
#include "stream.h"
#include "text.h"
#include "trace_file.h"

/* Limit of unfinished work; further work is not timed. */
#define PENDING_MAX 2048u

/* Timeout of the wait for work at the end of a trace. */
#define LAST_WORK_NS (500 * NS_PER_MS)

/* The time between two events around a kernel exceeds the kernel's, as CUPTI measures it, by this
 * much. It is 3.0 to 3.1 us for kernels of 1 to 44 us on an H100, driver 580. */
#define EVENTS_NS 3000u

/* A call of the driver that takes longer than this may have made the copy itself. */
#define SUBMISSION_NS (20 * NS_PER_US)

/* Of the base of a profile's times. */
#define BASE_LIFE_NS NS_PER_SEC

/* The base of the device's time, by an event. */
struct time_base {
    CUevent event; /* NULL: none yet */
    uint64_t ns;   /* when it was reached */
};

/* Events of a device that are used again, so that the driver need not make and destroy two for each
 * piece of work. */
struct spare_events {
    CUevent list[2 * PENDING_MAX];
    unsigned count;
};

struct pending_work {
    struct trace_record record;
    const struct time_base *base;
    CUevent before, behind;
    uint64_t gap_ns; /* between `before` and the work */
};

struct session_trace {
    struct session *session;
    struct trace *trace;     /* the server's; NULL = the client profiles itself */
    struct trace_file *file; /* of either */
    uint32_t correlation;    /* of the commands that follow; 0 = none */
    struct graph_timer timer;
    uint64_t stream_handle;     /* of the command that runs */
    struct traced_command node; /* of the graph that it launches */
    struct time_base bases[ATTACH_DEVICES_MAX];
    struct spare_events spares[ATTACH_DEVICES_MAX];
    struct pending_work pending[PENDING_MAX]; /* a ring */
    unsigned first, count;
};

/* ---- records ---- */

static void init_record(const struct session_trace *trace, struct trace_record *record)
{
    memset(record, 0, sizeof(*record));
    record->pid = trace->session->identity.pid;
    record->id = trace->session->id;
    record->uid = trace->session->identity.uid;
    record->correlation = trace->correlation;
}

static void write_client(struct session_trace *trace)
{
    const struct server_identity *identity = &trace->session->identity;
    struct trace_record record;

    init_record(trace, &record);
    text_format(record.name, sizeof(record.name), "%.*s", (int)sizeof(record.name) - 1,
                identity->command);
    trace_file_write(trace->file, TRACE_CLIENT, &record);
}

static void count_lost(struct session_trace *trace)
{
    atomic_fetch_add_explicit(&trace->file->header->lost, 1, memory_order_relaxed);
}

/* ---- events ---- */

/* The driver tells times since the base as a float. A profile may last long, so it has a new base
 * when no work refers to the old one. */
static void drop_old_base(const struct session_trace *trace, struct time_base *base)
{
    if (trace->trace || !base->event || trace->count || clock_ns() - base->ns < BASE_LIFE_NS)
        return;
    driver.cuEventDestroy_v2(base->event);
    base->event = NULL;
}

/* The watchdog's stream is idle, so its event is reached at once. */
static bool make_base(struct session_trace *trace, const struct device *device)
{
    struct time_base *base = &trace->bases[device->ordinal];
    uint64_t before;

    drop_old_base(trace, base);
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

static CUevent take_event(struct spare_events *spares)
{
    CUevent event;

    if (spares->count)
        return spares->list[--spares->count];
    return driver.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : NULL;
}

/* The device has reached it, or does not matter any more. */
static void give_event(struct spare_events *spares, CUevent event)
{
    if (spares->count < sizeof(spares->list) / sizeof(*spares->list))
        spares->list[spares->count++] = event;
    else
        driver.cuEventDestroy_v2(event);
}

static CUevent record_event(struct session_trace *trace, const struct stream *stream)
{
    struct spare_events *spares = &trace->spares[stream->device->ordinal];
    CUevent event = take_event(spares);

    if (!event || driver.cuEventRecord(event, stream->driver) == CUDA_SUCCESS)
        return event;
    give_event(spares, event);
    return NULL;
}

/* ---- commands ---- */

static bool can_be_timed(const struct session_trace *trace, const struct traced_command *command)
{
    return command->stream && command->stream->driver && trace->count < PENDING_MAX;
}

/* A profiler asked for all work of its own client, so its launches wait for space. They do not wait
 * indefinitely, because the oldest work may wait for a command behind this one. */
static void make_capacity(struct session_trace *trace)
{
    const struct timespec pause = {.tv_nsec = 50000};
    uint64_t end = clock_ns() + LAST_WORK_NS;

    while (!trace->trace && trace->count == PENDING_MAX && clock_ns() < end &&
           !trace->session->stop) {
        session_trace_collect(trace);
        if (trace->count == PENDING_MAX)
            nanosleep(&pause, NULL);
    }
}

static void record_before(struct session_trace *trace, struct traced_command *command)
{
    command->was_idle = command->kind == TRACE_COPY &&
                        driver.cuStreamQuery(command->stream->driver) == CUDA_SUCCESS;
    command->before = record_event(trace, command->stream);
}

static void begin_timing(struct session_trace *trace, struct traced_command *command)
{
    make_capacity(trace);
    /* The stream waits for its predecessors first, so that these waits do not count as work. */
    if (can_be_timed(trace, command) && stream_begin_work(command->stream) == CUDA_SUCCESS &&
        make_base(trace, command->stream->device))
        record_before(trace, command);
    command->recorded_ns = clock_ns();
    if (command->kind && !command->before)
        count_lost(trace);
}

void session_trace_before(struct session_trace *trace, const struct ring_message *message,
                          struct traced_command *ret_command)
{
    *ret_command = (struct traced_command){.op = channel_kind_op(message->kind)};
    traced_command_describe(trace->session, message, ret_command);
    begin_timing(trace, ret_command);
    trace->stream_handle = ret_command->stream_handle;
    ret_command->begin_ns = clock_ns();
}

/* An idle device reaches the event at once, and the kernel when its launch is there. */
static uint64_t gap_of_kernel(const struct traced_command *command, uint64_t submission_ns)
{
    bool was_idle = driver.cuEventQuery(command->before) == CUDA_SUCCESS;

    return EVENTS_NS + (was_idle ? submission_ns : 0);
}

/* What two events add to a copy is not measured. */
static uint64_t gap_of_copy(const struct traced_command *command, uint64_t submission_ns)
{
    return command->was_idle && submission_ns < SUBMISSION_NS ? submission_ns : 0;
}

/* The software GPU sets events exactly. */
static uint64_t find_gap(const struct session_trace *trace, const struct traced_command *command,
                         uint64_t launched_ns)
{
    uint64_t submission_ns = launched_ns - command->recorded_ns;

    if (trace->session->server->life->driver_kind == DRIVER_SOFT)
        return 0;
    if (command->kind == TRACE_KERNEL)
        return gap_of_kernel(command, submission_ns);
    return command->kind == TRACE_COPY ? gap_of_copy(command, submission_ns) : 0;
}

static void add_pending(struct session_trace *trace, const struct traced_command *command,
                        uint64_t now)
{
    struct pending_work *work = &trace->pending[(trace->first + trace->count) % PENDING_MAX];
    CUevent behind = record_event(trace, command->stream);

    if (!behind) {
        give_event(&trace->spares[command->stream->device->ordinal], command->before);
        count_lost(trace);
        return;
    }
    init_record(trace, &work->record);
    work->record.kind = command->kind;
    work->record.device = (uint32_t)command->stream->device->ordinal;
    work->record.stream = (uintptr_t)command->stream->word;
    work->record.submitted_ns = now;
    work->record.bytes = command->bytes;
    work->record.to = command->to;
    work->record.from = command->from;
    work->record.stream_handle = command->stream_handle;
    work->record.object_handle = command->object_handle;
    work->record.shared_bytes = command->shared_bytes;
    work->record.in_graph = command->in_graph;
    work->record.node = command->node;
    work->record.value = command->value;
    memcpy(work->record.grid, command->grid, sizeof(command->grid));
    memcpy(work->record.block, command->block, sizeof(command->block));
    text_copy(work->record.name, sizeof(work->record.name), command->name);
    work->gap_ns = find_gap(trace, command, now);
    work->base = &trace->bases[command->stream->device->ordinal];
    work->before = command->before;
    work->behind = behind;
    trace->count++;
}

static void write_command(struct session_trace *trace, const struct traced_command *command,
                          uint64_t end_ns)
{
    const char *name = wire_op_name(command->op);
    struct trace_record record;

    init_record(trace, &record);
    record.submitted_ns = record.begin_ns = command->begin_ns;
    record.end_ns = end_ns;
    text_copy(record.name, sizeof(record.name), name ? name : "unknown");
    trace_file_write(trace->file, TRACE_COMMAND, &record);
}

void session_trace_after(struct session_trace *trace, const struct traced_command *command)
{
    uint64_t end_ns = clock_ns();

    if (trace->trace)
        write_command(trace, command, end_ns);
    if (command->before)
        add_pending(trace, command, end_ns);
    if (trace->count >= PENDING_MAX / 2)
        session_trace_collect(trace);
}

/* ---- nodes of graphs ---- */

static void before_node(void *context, struct stream *stream, const struct graph_node_work *work)
{
    struct session_trace *trace = context;

    traced_command_describe_node(work, &trace->node);
    trace->node.stream = stream;
    trace->node.stream_handle = trace->stream_handle;
    begin_timing(trace, &trace->node);
}

static void after_node(void *context)
{
    struct session_trace *trace = context;

    if (trace->node.before)
        add_pending(trace, &trace->node, clock_ns());
}

void session_trace_correlate(struct session_trace *trace, uint32_t number)
{
    trace->correlation = number;
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
    trace_file_write(trace->file, TRACE_RANGE, &record);
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
    if (work->gap_ns < work->record.end_ns - work->record.begin_ns)
        work->record.begin_ns += work->gap_ns;
    return true;
}

static void take_first(struct session_trace *trace, bool done)
{
    struct pending_work *work = &trace->pending[trace->first];
    struct trace_record *record = &work->record;

    if (done && find_times(work))
        trace_file_write(trace->file, record->kind, record);
    else
        count_lost(trace);
    give_event(&trace->spares[record->device], work->before);
    give_event(&trace->spares[record->device], work->behind);
    trace->first = (trace->first + 1) % PENDING_MAX;
    trace->count--;
}

void session_trace_collect(struct session_trace *trace)
{
    while (trace->count &&
           driver.cuEventQuery(trace->pending[trace->first].behind) != CUDA_ERROR_NOT_READY)
        take_first(trace, true);
}

void session_trace_collect_last(struct session_trace *trace)
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

static struct session_trace *create_session_trace(struct session *session, struct trace *trace,
                                                  struct trace_file *file)
{
    struct session_trace *made = calloc(1, sizeof(*made));

    if (!made)
        return NULL;
    made->session = session;
    made->trace = trace;
    made->file = file;
    session->life->tracing = made;
    session->is_timed = true;
    made->timer = (struct graph_timer){before_node, after_node, made};
    if (!trace)
        session_graphs_time(session, &made->timer);
    return made;
}

static struct session_trace *join_trace(struct session *session)
{
    struct trace *trace = server_trace_acquire(session->server);
    struct session_trace *made = NULL;

    if (trace && is_wanted(trace, session))
        made = create_session_trace(session, trace, &trace->file);
    if (!made) {
        if (trace)
            server_trace_release(session->server, trace);
        return NULL;
    }
    write_client(made);
    channel_server_set_traced(session->channel, true);
    return made;
}

struct session_trace *session_trace_begin(struct session *session)
{
    struct trace_file *profile = session->life->profile;

    return profile ? create_session_trace(session, NULL, profile) : join_trace(session);
}

/* A profiler of the client itself comes before a trace of the server. */
bool session_trace_goes_on(const struct session_trace *trace)
{
    const struct trace_file *profile = trace->session->life->profile;

    return trace->trace ? !profile && !server_trace_is_over(trace->trace) : profile == trace->file;
}

static void leave_trace(struct session_trace *trace)
{
    channel_server_set_traced(trace->session->channel, false);
    server_trace_release(trace->session->server, trace->trace);
}

static void destroy_events(struct session_trace *trace, unsigned device)
{
    struct spare_events *spares = &trace->spares[device];

    if (trace->bases[device].event)
        driver.cuEventDestroy_v2(trace->bases[device].event);
    while (spares->count)
        driver.cuEventDestroy_v2(spares->list[--spares->count]);
}

void session_trace_end(struct session_trace *trace)
{
    session_trace_collect_last(trace);
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++)
        destroy_events(trace, i);
    trace->session->life->tracing = NULL;
    trace->session->is_timed = false;
    session_graphs_time(trace->session, NULL);
    if (trace->trace)
        leave_trace(trace);
    else
        session_profile_close(trace->session, trace->file);
    free(trace);
}
