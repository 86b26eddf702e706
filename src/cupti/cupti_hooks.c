/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_hooks.h. */
#include "cupti_hooks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "cupti_buffer.h"
#include "cupti_callback.h"
#include "cupti_clock.h"
#include "cupti_driver.h"
#include "cupti_event.h"
#include "cupti_graph.h"
#include "cupti_intern.h"
#include "cupti_marker.h"
#include "cupti_memory.h"
#include "cupti_names.h"
#include "cupti_object.h"
#include "cupti_resource.h"
#include "cupti_state.h"

#define EXTERNAL_KINDS 6u
#define EXTERNAL_DEPTH 64u

/* Ids that a thread has pushed; those deeper than the array are counted only. */
struct external_stack {
    uint32_t depth;
    uint64_t ids[EXTERNAL_DEPTH];
};

static __thread struct external_stack external[EXTERNAL_KINDS];
static atomic_bool system_threads;
static _Atomic uint32_t next_correlation = 1;

/* ---- external correlation ---- */

CUptiResult cupti_external_push(uint32_t kind, uint64_t id)
{
    struct external_stack *stack = &external[kind % EXTERNAL_KINDS];

    if (!kind || kind >= EXTERNAL_KINDS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (stack->depth < EXTERNAL_DEPTH)
        stack->ids[stack->depth] = id;
    stack->depth++;
    return CUPTI_SUCCESS;
}

static uint64_t top_of(const struct external_stack *stack)
{
    return stack->ids[(stack->depth < EXTERNAL_DEPTH ? stack->depth : EXTERNAL_DEPTH) - 1];
}

CUptiResult cupti_external_pop(uint32_t kind, uint64_t *ret_id)
{
    struct external_stack *stack = &external[kind % EXTERNAL_KINDS];

    if (!kind || kind >= EXTERNAL_KINDS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!stack->depth)
        return CUPTI_ERROR_QUEUE_EMPTY;
    if (ret_id)
        *ret_id = top_of(stack);
    stack->depth--;
    return CUPTI_SUCCESS;
}

static void append_external(uint32_t correlation)
{
    struct cupti_external record = {
        .kind = CUPTI_KIND_EXTERNAL_CORRELATION,
        .correlation = correlation,
    };

    for (uint32_t kind = 1; kind < EXTERNAL_KINDS; kind++) {
        if (!external[kind].depth)
            continue;
        record.external_kind = kind;
        record.external = top_of(&external[kind]);
        cupti_buffer_append(&record);
    }
}

/* ---- calls ---- */

void cupti_use_system_threads(bool use)
{
    atomic_store_explicit(&system_threads, use, memory_order_relaxed);
}

bool cupti_uses_system_threads(void)
{
    return atomic_load_explicit(&system_threads, memory_order_relaxed);
}

/* Neither changes but by a fork, and each is a system call. */
static _Atomic uint32_t process;        /* 0: not asked yet */
static __thread uint32_t system_thread; /* the same */

static uint32_t process_number(void)
{
    uint32_t number = atomic_load_explicit(&process, memory_order_relaxed);

    if (!number) {
        number = (uint32_t)getpid();
        atomic_store_explicit(&process, number, memory_order_relaxed);
    }
    return number;
}

static uint32_t system_thread_number(void)
{
    if (!system_thread)
        system_thread = (uint32_t)syscall(SYS_gettid);
    return system_thread;
}

uint32_t cupti_thread_number(void)
{
    return cupti_uses_system_threads() ? system_thread_number()
                                       : (uint32_t)(uintptr_t)pthread_self();
}

static void append_call(const struct profiler_call *call, uint32_t cbid)
{
    const struct cupti_call record = {
        .kind = call->runtime_cbid ? CUPTI_KIND_RUNTIME : CUPTI_KIND_DRIVER,
        .cbid = cbid,
        .start = cupti_clock_at(call->begin_ns),
        .end = cupti_clock_at(call->end_ns),
        .process = process_number(),
        .thread = cupti_thread_number(),
        .correlation = call->correlation,
        .result = (uint32_t)call->result,
    };

    cupti_buffer_append(&record);
}

static bool begins_with(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

/* 0: the call does not wait. */
static uint32_t wait_type(const char *name)
{
    static const struct {
        const char *driver, *runtime;
        uint32_t type;
    } waits[] = {
        {"cuEventSynchronize", "cudaEventSynchronize", CUPTI_SYNC_EVENT},
        {"cuStreamWaitEvent", "cudaStreamWaitEvent", CUPTI_SYNC_STREAM_WAIT_EVENT},
        {"cuStreamSynchronize", "cudaStreamSynchronize", CUPTI_SYNC_STREAM},
        {"cuCtxSynchronize", "cudaDeviceSynchronize", CUPTI_SYNC_CONTEXT},
    };

    for (unsigned i = 0; i < sizeof(waits) / sizeof(*waits); i++)
        if (begins_with(name, waits[i].driver) || begins_with(name, waits[i].runtime))
            return waits[i].type;
    return 0;
}

static void append_wait(const struct profiler_call *call, uint32_t type)
{
    bool has_stream = type == CUPTI_SYNC_STREAM || type == CUPTI_SYNC_STREAM_WAIT_EVENT;
    CUcontext context;
    const struct cupti_wait record = {
        .kind = CUPTI_KIND_SYNCHRONIZATION,
        .type = type,
        .start = cupti_clock_at(call->begin_ns),
        .end = cupti_clock_at(call->end_ns),
        .correlation = call->correlation,
        .context = cupti_current_context(&context),
        .stream = has_stream ? cupti_stream_number(call->stream) : CUPTI_INVALID_ID,
        .event = cupti_event_id(call->event),
        .event_number = cupti_event_newest(call->event),
        .result = (uint32_t)call->result,
    };

    cupti_buffer_append(&record);
}

static uint32_t take_correlation(void)
{
    uint32_t number = atomic_fetch_add_explicit(&next_correlation, 1, memory_order_relaxed);

    return number ? number : take_correlation();
}

static uint32_t cbid_of(const struct profiler_call *call)
{
    return call->runtime_cbid ? call->runtime_cbid : cupti_driver_cbid(call->name);
}

static uint32_t enter(const struct profiler_call *call)
{
    uint32_t correlation = call->correlation ? call->correlation : take_correlation();

    if (begins_with(call->name, "cuGraphLaunch"))
        cupti_graph_launched(call->arguments, correlation);
    cupti_memory_enter(call);
    cupti_resource_enter(call);
    cupti_callback_enter(call, correlation);
    return correlation;
}

/* A call that the runtime makes is a part of the runtime's call, and has no record beside that's.
 */
static bool has_record(const struct profiler_call *call, uint32_t cbid)
{
    if (call->runtime_cbid)
        return cupti_kind_is_on(CUPTI_KIND_RUNTIME) && cupti_call_is_on(true, cbid);
    return cupti_kind_is_on(CUPTI_KIND_DRIVER) && cupti_call_is_on(false, cbid) &&
           !(call->is_nested && cupti_kind_is_on(CUPTI_KIND_RUNTIME));
}

static void append_outer(const struct profiler_call *call)
{
    uint32_t type = wait_type(call->name);

    if (type && cupti_kind_is_on(CUPTI_KIND_SYNCHRONIZATION))
        append_wait(call, type);
    cupti_driver()->profiler->collect(0);
    cupti_buffer_deliver_due();
}

static void leave_call(const struct profiler_call *call)
{
    uint32_t cbid = cbid_of(call);

    /* Profilers look for the ids of a call when they read its record. */
    if (!call->is_nested && cupti_kind_is_on(CUPTI_KIND_EXTERNAL_CORRELATION))
        append_external(call->correlation);
    if (has_record(call, cbid))
        append_call(call, cbid);
    cupti_object_leave(call);
    cupti_memory_leave(call);
    cupti_event_leave(call);
    if (!call->is_nested)
        append_outer(call);
    cupti_resource_leave(call);
    cupti_callback_leave(call, cbid);
}

/* ---- work ---- */

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct cupti_copy copy;                                /* kind 0: none */
static int64_t kernels;

static atomic_bool tells_submissions;

static void finish_copy(void)
{
    if (copy.kind)
        cupti_buffer_append(&copy);
    copy.kind = 0;
}

void cupti_hooks_finish(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&work_lock);

    finish_copy();
}

/* 0 = the work is no node of a graph. */
static uint32_t graph_of(const struct profiler_work *work)
{
    return work->in_graph || work->kind == PROFILER_GRAPH ? cupti_graph_of_launch(work->correlation)
                                                          : 0;
}

void cupti_tell_submissions(bool tell)
{
    atomic_store_explicit(&tells_submissions, tell, memory_order_relaxed);
}

/* The server reads its clock after the driver's call, when the kernel may run already. */
static uint64_t submission_of(const struct profiler_work *work)
{
    uint64_t at = work->submitted_ns < work->begin_ns ? work->submitted_ns : work->begin_ns;
    bool told = atomic_load_explicit(&tells_submissions, memory_order_relaxed);

    return told ? cupti_clock_at(at) : 0;
}

/* The fields that the records of all kinds of work share, though not where. */
#define WORK_FIELDS(work)                                                             \
    .start = cupti_clock_at((work)->begin_ns), .end = cupti_clock_at((work)->end_ns), \
    .device = (work)->device, .context = (work)->context, .stream = (work)->stream,   \
    .correlation = (work)->correlation, .graph = graph_of(work)

static void append_kernel(const struct profiler_work *work)
{
    struct cupti_kernel record = {
        .kind = cupti_kind_is_on(CUPTI_KIND_CONCURRENT_KERNEL) ? CUPTI_KIND_CONCURRENT_KERNEL
                                                               : CUPTI_KIND_KERNEL,
        .registers = (uint16_t)work->registers,
        WORK_FIELDS(work),
        .static_shared = (int32_t)work->static_shared,
        .dynamic_shared = (int32_t)work->dynamic_shared,
        .shared_executed = work->static_shared + work->dynamic_shared,
        .local_per_thread = work->local_per_thread,
        .grid_id = ++kernels,
        .submitted = submission_of(work),
        .graph_node = cupti_graph_node_of(work),
        .name = cupti_intern(work->name),
    };

    record.completed = record.end;
    memcpy(record.grid, work->grid, sizeof(record.grid));
    memcpy(record.block, work->block, sizeof(record.block));
    if (cupti_kind_is_on(record.kind))
        cupti_buffer_append(&record);
}

static uint8_t memory_kind(enum profiler_memory memory)
{
    static const uint8_t kinds[] = {
        [PROFILER_UNKNOWN] = CUPTI_MEMORY_UNKNOWN,
        [PROFILER_PAGEABLE] = CUPTI_MEMORY_PAGEABLE,
        [PROFILER_PINNED] = CUPTI_MEMORY_PINNED,
        [PROFILER_DEVICE] = CUPTI_MEMORY_DEVICE,
    };

    return kinds[memory];
}

static uint8_t copy_kind(enum profiler_memory to, enum profiler_memory from)
{
    if (to == PROFILER_UNKNOWN || from == PROFILER_UNKNOWN)
        return CUPTI_COPY_UNKNOWN;
    if (to == PROFILER_DEVICE)
        return from == PROFILER_DEVICE ? CUPTI_COPY_DTOD : CUPTI_COPY_HTOD;
    return from == PROFILER_DEVICE ? CUPTI_COPY_DTOH : CUPTI_COPY_HTOH;
}

static bool continues_copy(const struct cupti_copy *next)
{
    return copy.kind && copy.correlation && copy.correlation == next->correlation &&
           copy.copy_kind == next->copy_kind && copy.source_kind == next->source_kind &&
           copy.destination_kind == next->destination_kind;
}

/* A large copy of pageable memory comes in chunks, which are one copy to the program. */
static void add_copy(const struct cupti_copy *next)
{
    if (!continues_copy(next)) {
        finish_copy();
        copy = *next;
        return;
    }
    copy.bytes += next->bytes;
    copy.end = next->end > copy.end ? next->end : copy.end;
}

static bool is_between_devices(const struct profiler_work *work)
{
    return work->to == PROFILER_DEVICE && work->from == PROFILER_DEVICE &&
           work->to_place.device != work->from_place.device;
}

static void append_peer_copy(const struct profiler_work *work)
{
    const struct cupti_peer_copy record = {
        .kind = CUPTI_KIND_MEMCPY2,
        .copy_kind = CUPTI_COPY_PTOP,
        .source_kind = CUPTI_MEMORY_DEVICE,
        .destination_kind = CUPTI_MEMORY_DEVICE,
        .bytes = work->bytes,
        WORK_FIELDS(work),
        .source_device = work->from_place.device,
        .source_context = work->from_place.context,
        .destination_device = work->to_place.device,
        .destination_context = work->to_place.context,
        .graph_node = cupti_graph_node_of(work),
    };

    if (cupti_kind_is_on(CUPTI_KIND_MEMCPY2))
        cupti_buffer_append(&record);
}

static void append_copy(const struct profiler_work *work)
{
    const struct cupti_copy next = {
        .kind = CUPTI_KIND_MEMCPY,
        .copy_kind = copy_kind(work->to, work->from),
        .source_kind = memory_kind(work->from),
        .destination_kind = memory_kind(work->to),
        .bytes = work->bytes,
        WORK_FIELDS(work),
        .graph_node = cupti_graph_node_of(work),
        .copy_count = 1,
    };

    if (cupti_kind_is_on(CUPTI_KIND_MEMCPY))
        add_copy(&next);
}

static void append_memset(const struct profiler_work *work)
{
    const struct cupti_memset record = {
        .kind = CUPTI_KIND_MEMSET,
        .value = work->value,
        .bytes = work->bytes,
        WORK_FIELDS(work),
        .memory_kind = CUPTI_MEMORY_DEVICE,
        .graph_node = cupti_graph_node_of(work),
    };

    if (cupti_kind_is_on(CUPTI_KIND_MEMSET))
        cupti_buffer_append(&record);
}

static void append_graph(const struct profiler_work *work)
{
    const struct cupti_graph record = {
        .kind = CUPTI_KIND_GRAPH_TRACE,
        WORK_FIELDS(work),
        .end_device = work->device,
        .end_context = work->context,
    };

    if (cupti_kind_is_on(CUPTI_KIND_GRAPH_TRACE))
        cupti_buffer_append(&record);
}

/* As NVIDIA's: a graph has either one record, or one for each of its nodes. */
static void take(const struct profiler_work *work)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&work_lock);

    if (work->in_graph && cupti_kind_is_on(CUPTI_KIND_GRAPH_TRACE))
        return;
    if (work->kind != PROFILER_COPY || is_between_devices(work))
        finish_copy();
    if (work->kind == PROFILER_KERNEL)
        append_kernel(work);
    else if (work->kind == PROFILER_COPY && is_between_devices(work))
        append_peer_copy(work);
    else if (work->kind == PROFILER_COPY)
        append_copy(work);
    else if (work->kind == PROFILER_MEMSET)
        append_memset(work);
    else
        append_graph(work);
}

static void mark(const struct profiler_mark *what)
{
    cupti_marker_append(what);
    cupti_callback_nvtx(what);
}

void cupti_hooks_after_fork(void)
{
    pthread_mutex_init(&work_lock, NULL);
    copy.kind = 0;
    atomic_store_explicit(&process, 0, memory_order_relaxed);
    system_thread = 0;
    memset(external, 0, sizeof(external));
}

const struct profiler_hooks cupti_hooks = {.enter = enter,
                                           .leave = leave_call,
                                           .take = take,
                                           .mark = mark,
                                           .resource = cupti_resource_change};
