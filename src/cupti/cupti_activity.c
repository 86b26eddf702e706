/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's activity functions, as its public documentation describes them. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "cupti_buffer.h"
#include "cupti_callback.h"
#include "cupti_clock.h"
#include "cupti_driver.h"
#include "cupti_functions.h"
#include "cupti_hooks.h"
#include "cupti_state.h"

#define ATTRIBUTES 11u

CUptiResult cuptiActivityRegisterCallbacks(cupti_request_buffer request,
                                           cupti_complete_buffer complete)
{
    return cupti_buffer_set_callbacks(request, complete);
}

CUptiResult cuptiActivityEnable(uint32_t kind)
{
    return cupti_kind_switch(kind, true);
}

CUptiResult cuptiActivityDisable(uint32_t kind)
{
    return cupti_kind_switch(kind, false);
}

CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
    return cupti_call_switch(false, cbid, enable != 0);
}

CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
    return cupti_call_switch(true, cbid, enable != 0);
}

/* ---- flush ---- */

/* It stands in the buffer that the next flush delivers. */
static void append_overhead(uint64_t begin_ns)
{
    const struct cupti_overhead record = {
        .kind = CUPTI_KIND_OVERHEAD,
        .overhead_kind = CUPTI_OVERHEAD_BUFFER_FLUSH,
        .object_kind = CUPTI_OBJECT_THREAD,
        .process = (uint32_t)getpid(),
        .thread = cupti_thread_number(),
        .start = cupti_clock_at(begin_ns),
        .end = cupti_clock_at(clock_ns()),
    };

    if (cupti_kind_is_on(CUPTI_KIND_OVERHEAD))
        cupti_buffer_append(&record);
}

CUptiResult cuptiActivityFlushAll(uint32_t flags)
{
    uint64_t began = clock_ns();

    cupti_collect(true);
    append_overhead(began);
    cupti_buffer_deliver_all();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flags)
{
    return cuptiActivityFlushAll(flags);
}

CUptiResult cuptiActivityFlushPeriod(uint32_t period_ms)
{
    cupti_buffer_set_period(period_ms);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    cupti_tell_submissions(enable != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                              size_t *ret_dropped)
{
    static _Atomic uint64_t reported; /* records that the server lost, told so far */
    const struct cupti_driver *driver = cupti_driver();
    uint64_t lost = driver ? driver->profiler->lost() : 0, before;

    if (!ret_dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    before = atomic_exchange_explicit(&reported, lost, memory_order_relaxed);
    *ret_dropped = cupti_buffer_take_dropped() + (lost > before ? lost - before : 0);
    return CUPTI_SUCCESS;
}

/* ---- reading a buffer ---- */

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size, void **record)
{
    uint8_t *at = buffer;
    uint32_t kind;
    size_t size;

    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (*record) {
        at = *record;
        memcpy(&kind, at, sizeof(kind));
        size = cupti_record_size(kind);
        if (at < buffer || !size)
            return CUPTI_ERROR_INVALID_KIND;
        at += size;
    }
    if ((size_t)(at - buffer) + sizeof(kind) > valid_size)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    memcpy(&kind, at, sizeof(kind));
    size = cupti_record_size(kind);
    if (!size || size > valid_size - (size_t)(at - buffer))
        return size ? CUPTI_ERROR_MAX_LIMIT_REACHED : CUPTI_ERROR_INVALID_KIND;
    *record = at;
    return CUPTI_SUCCESS;
}

/* ---- time ---- */

CUptiResult cuptiGetTimestamp(uint64_t *ret_time)
{
    if (!ret_time)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_time = cupti_clock_now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(cupti_timestamp clock)
{
    if (!clock)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_clock_set(clock);
    return CUPTI_SUCCESS;
}

/* ---- correlation ---- */

CUptiResult cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id)
{
    return cupti_external_push(kind, id);
}

CUptiResult cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *ret_id)
{
    return cupti_external_pop(kind, ret_id);
}

/* ---- attributes: sizes of buffers that Funnel does not need ---- */

static _Atomic size_t attributes[ATTRIBUTES] = {
    3200000, /* DEVICE_BUFFER_SIZE */
    8388608, /* DEVICE_BUFFER_SIZE_CDP */
    250,     /* DEVICE_BUFFER_POOL_LIMIT */
    25000,   /* PROFILING_SEMAPHORE_POOL_SIZE */
    250,     /* PROFILING_SEMAPHORE_POOL_LIMIT */
};

/* ZEROED_OUT_ACTIVITY_BUFFER, MEM_ALLOCATION_TYPE_HOST_PINNED and PER_THREAD_ACTIVITY_BUFFER are
 * one byte. */
static size_t attribute_size(uint32_t attribute)
{
    return attribute == 5 || attribute == 8 || attribute == 9 ? sizeof(uint8_t) : sizeof(size_t);
}

static CUptiResult check_attribute(uint32_t attribute, const size_t *size, const void *value)
{
    if (!size || !value || attribute >= ATTRIBUTES)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return *size >= attribute_size(attribute) ? CUPTI_SUCCESS
                                              : CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
}

CUptiResult cuptiActivitySetAttribute(uint32_t attribute, size_t *size, const void *value)
{
    CUptiResult result = check_attribute(attribute, size, value);
    size_t number = 0;

    if (result != CUPTI_SUCCESS)
        return result;
    memcpy(&number, value, attribute_size(attribute));
    atomic_store_explicit(&attributes[attribute], number, memory_order_relaxed);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
    CUptiResult result = check_attribute(attribute, size, value);
    size_t number;

    if (result != CUPTI_SUCCESS)
        return result;
    number = atomic_load_explicit(&attributes[attribute], memory_order_relaxed);
    memcpy(value, &number, attribute_size(attribute));
    *size = attribute_size(attribute);
    return CUPTI_SUCCESS;
}

/* ---- the end ---- */

CUptiResult cuptiFinalize(void)
{
    cupti_callback_end();
    cupti_kinds_off();
    cupti_buffer_deliver_all();
    return CUPTI_SUCCESS;
}
