/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_marker.h. */
#include "cupti_marker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "cupti_abi.h"
#include "cupti_buffer.h"
#include "cupti_clock.h"
#include "cupti_driver.h"
#include "cupti_hooks.h"
#include "cupti_intern.h"
#include "cupti_state.h"

#define DEPTH_MAX 64u
#define OPEN_MAX 256u

/* A range that has begun. */
struct open_range {
    uint32_t id;        /* of its marker; 0 = none */
    const char *domain; /* as the program gave it */
    uint64_t number;    /* of a range that any thread may end */
};

static __thread struct open_range pushed[DEPTH_MAX];
static __thread unsigned depth;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_range open_ranges[OPEN_MAX];

static uint32_t take_id(void)
{
    static _Atomic uint32_t next_id = 1;
    uint32_t id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);

    return id ? id : take_id();
}

static uint32_t payload_kind(enum profiler_payload payload)
{
    static const uint32_t kinds[] = {
        [PROFILER_NO_PAYLOAD] = CUPTI_VALUE_UINT64,
        [PROFILER_UNSIGNED] = CUPTI_VALUE_UINT64,
        [PROFILER_SIGNED] = CUPTI_VALUE_INT64,
        [PROFILER_DOUBLE] = CUPTI_VALUE_DOUBLE,
    };

    return kinds[payload];
}

static void append_data(uint32_t id, const struct profiler_mark_data *data)
{
    const struct cupti_marker_data record = {
        .kind = CUPTI_KIND_MARKER_DATA,
        .flags = data->has_color ? CUPTI_FLAG_COLOR_ARGB : CUPTI_FLAG_COLOR_NONE,
        .id = id,
        .payload_kind = payload_kind(data->payload_kind),
        .payload = data->payload,
        .color = data->color,
        .category = data->category,
    };

    cupti_buffer_append(&record);
}

static uint32_t append(uint32_t id, uint32_t flags, const struct profiler_mark *mark)
{
    const struct cupti_marker record = {
        .kind = CUPTI_KIND_MARKER,
        .flags = flags,
        .time = cupti_clock_now(),
        .id = id,
        .object_kind = CUPTI_OBJECT_THREAD,
        .process = (uint32_t)getpid(),
        .thread = cupti_thread_number(),
        .name = mark->text ? cupti_intern(mark->text) : NULL,
        .domain = mark->domain ? cupti_intern(mark->domain) : NULL,
    };

    cupti_buffer_append(&record);
    if (mark->data && cupti_kind_is_on(CUPTI_KIND_MARKER_DATA))
        append_data(id, mark->data);
    return id;
}

/* ---- ranges of a thread ---- */

/* Ranges that are deeper than the array have no records. */
static void push(const struct profiler_mark *mark)
{
    if (depth == DEPTH_MAX)
        return;
    pushed[depth++] = (struct open_range){
        .id = append(take_id(), CUPTI_FLAG_MARKER_START, mark),
        .domain = mark->domain,
    };
}

static void pop(const struct profiler_mark *mark)
{
    unsigned at = depth;

    while (at && pushed[at - 1].domain != mark->domain)
        at--;
    if (!at)
        return;
    append(pushed[at - 1].id, CUPTI_FLAG_MARKER_END, mark);
    memmove(&pushed[at - 1], &pushed[at], (depth - at) * sizeof(*pushed));
    depth--;
}

/* ---- ranges of a process ---- */

static struct open_range *find_open(uint64_t number)
{
    for (unsigned i = 0; i < OPEN_MAX; i++)
        if (open_ranges[i].number == number)
            return &open_ranges[i];
    return NULL;
}

static void start_range(const struct profiler_mark *mark)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&open_lock);
    struct open_range *range = find_open(0);

    if (range)
        *range = (struct open_range){
            .id = append(take_id(), CUPTI_FLAG_MARKER_START, mark),
            .number = mark->number,
        };
}

static void end(const struct profiler_mark *mark)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&open_lock);
    struct open_range *range = mark->number ? find_open(mark->number) : NULL;

    if (!range)
        return;
    append(range->id, CUPTI_FLAG_MARKER_END, mark);
    range->number = 0;
}

/* ---- names ---- */

static void append_name(uint32_t kind, const uint32_t object[3], const char *text)
{
    struct cupti_name record = {
        .kind = CUPTI_KIND_NAME,
        .object_kind = kind,
        .name = cupti_intern(text),
    };

    memcpy(record.object, object, sizeof(record.object));
    cupti_buffer_append(&record);
}

static void name_object(const struct profiler_mark *mark)
{
    const void *handle = (const void *)(uintptr_t)mark->number;
    uint32_t device = cupti_current_device();
    CUcontext context;

    if (mark->kind == PROFILER_NAME_THREAD)
        append_name(CUPTI_OBJECT_THREAD,
                    (const uint32_t[]){(uint32_t)getpid(), (uint32_t)mark->number, 0}, mark->text);
    else if (mark->kind == PROFILER_NAME_DEVICE)
        append_name(CUPTI_OBJECT_DEVICE, (const uint32_t[]){(uint32_t)mark->number, 0, 0},
                    mark->text);
    else if (mark->kind == PROFILER_NAME_CONTEXT)
        append_name(CUPTI_OBJECT_CONTEXT,
                    (const uint32_t[]){device, cupti_context_number((CUcontext)handle), 0},
                    mark->text);
    else if (mark->kind == PROFILER_NAME_STREAM)
        append_name(CUPTI_OBJECT_STREAM,
                    (const uint32_t[]){device, cupti_current_context(&context),
                                       cupti_stream_number((CUstream)handle)},
                    mark->text);
}

void cupti_marker_append(const struct profiler_mark *mark)
{
    if (mark->text && cupti_kind_is_on(CUPTI_KIND_NAME))
        name_object(mark);
    if (!cupti_kind_is_on(CUPTI_KIND_MARKER))
        return;
    if (mark->kind == PROFILER_MARK)
        append(take_id(), CUPTI_FLAG_MARKER_INSTANTANEOUS, mark);
    else if (mark->kind == PROFILER_PUSH)
        push(mark);
    else if (mark->kind == PROFILER_POP)
        pop(mark);
    else if (mark->kind == PROFILER_START)
        start_range(mark);
    else if (mark->kind == PROFILER_END)
        end(mark);
}

/* The thread that forked goes on in its ranges, of which the child records none. */
void cupti_marker_after_fork(void)
{
    pthread_mutex_init(&open_lock, NULL);
    memset(open_ranges, 0, sizeof(open_ranges));
    depth = 0;
}

/* ---- NVTX ---- */

CUPTI_EXPORT int InitializeInjectionNvtx2(void *get_export_table);

/* NVTX asks the library that NVTX_INJECTION64_PATH names, and CUPTI's documentation says to name
 * CUPTI there. libcuda has the functions, which call the hook. */
int InitializeInjectionNvtx2(void *get_export_table)
{
    const struct cupti_driver *driver = cupti_driver();

    return driver ? driver->nvtx_injection(get_export_table) : 0;
}
