/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_event.h. A program may record an event again, so each time has a number of its own,
 * which waits for the event name. */
#include "cupti_event.h"

#include <stdatomic.h>

#include "cupti_abi.h"
#include "cupti_buffer.h"
#include "cupti_call.h"
#include "cupti_driver.h"
#include "cupti_state.h"

/* Of more events at a time, some waits have no number. */
#define EVENTS 4096u

static _Atomic uint64_t newest[EVENTS]; /* the event's id, and the number */

/* Handles carry their number and generation in their low half, so it is an id as well. */
uint32_t cupti_event_id(CUevent event)
{
    return event ? (uint32_t)(uintptr_t)event : CUPTI_INVALID_ID;
}

static uint32_t take_number(CUevent event)
{
    static _Atomic uint32_t last;
    uint32_t id = cupti_event_id(event);
    uint32_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;

    atomic_store_explicit(&newest[id % EVENTS], (uint64_t)id << 32 | number, memory_order_relaxed);
    return number;
}

uint32_t cupti_event_newest(CUevent event)
{
    uint32_t id = cupti_event_id(event);
    uint64_t found = atomic_load_explicit(&newest[id % EVENTS], memory_order_relaxed);

    return event && found >> 32 == id ? (uint32_t)found : CUPTI_INVALID_ID;
}

static void append_event(const struct profiler_call *call)
{
    CUcontext context;
    const struct cupti_event record = {
        .kind = CUPTI_KIND_CUDA_EVENT,
        .correlation = call->correlation,
        .context = cupti_current_context(&context),
        .stream = cupti_stream_number(cupti_call_stream(call)),
        .event = cupti_event_id(call->event),
        .device = cupti_current_device(),
        .number = take_number(call->event),
    };

    cupti_buffer_append(&record);
}

/* In a capture the event stands for a place in the graph, and nothing is recorded. */
void cupti_event_leave(const struct profiler_call *call)
{
    if (!call->runtime_cbid && call->result == CUDA_SUCCESS && call->event &&
        cupti_kind_is_on(CUPTI_KIND_CUDA_EVENT) && cupti_call_begins(call, "cuEventRecord") &&
        !cupti_call_is_captured(call))
        append_event(call);
}
