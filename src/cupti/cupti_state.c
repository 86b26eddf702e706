/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_state.h. */
#include "cupti_state.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cleanup.h"
#include "cupti_buffer.h"
#include "cupti_callback.h"
#include "cupti_clock.h"
#include "cupti_driver.h"
#include "cupti_hooks.h"
#include "cupti_intern.h"
#include "cupti_marker.h"
#include "cupti_object.h"

#define CBIDS_MAX 1024u

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool kinds_on[CUPTI_KINDS];   /* written with the lock */
static atomic_bool calls_off[2][CBIDS_MAX]; /* calls without records, of driver and runtime */
static bool wants_callbacks;                /* with the lock, as the next */
static bool is_hooked;                      /* libcuda calls the hooks */

bool cupti_kind_is_on(uint32_t kind)
{
    return kind < CUPTI_KINDS && atomic_load_explicit(&kinds_on[kind], memory_order_relaxed);
}

bool cupti_call_is_on(bool of_runtime, uint32_t cbid)
{
    return cbid && cbid < CBIDS_MAX &&
           !atomic_load_explicit(&calls_off[of_runtime][cbid], memory_order_relaxed);
}

CUptiResult cupti_call_switch(bool of_runtime, uint32_t cbid, bool on)
{
    if (!cbid || cbid >= CBIDS_MAX)
        return CUPTI_ERROR_INVALID_PARAMETER;
    atomic_store_explicit(&calls_off[of_runtime][cbid], !on, memory_order_relaxed);
    return CUPTI_SUCCESS;
}

static bool wants_hooks(void)
{
    for (uint32_t kind = 0; kind < CUPTI_KINDS; kind++)
        if (cupti_kind_is_on(kind))
            return true;
    return wants_callbacks;
}

static void forget_switches(void)
{
    for (uint32_t kind = 0; kind < CUPTI_KINDS; kind++)
        atomic_store_explicit(&kinds_on[kind], false, memory_order_relaxed);
    for (uint32_t cbid = 0; cbid < CBIDS_MAX; cbid++) {
        atomic_store_explicit(&calls_off[0][cbid], false, memory_order_relaxed);
        atomic_store_explicit(&calls_off[1][cbid], false, memory_order_relaxed);
    }
}

/* A child has no profiler, as libcuda has none there: but it may begin to profile itself. */
static void after_fork(void)
{
    pthread_mutex_init(&state_lock, NULL);
    forget_switches();
    wants_callbacks = is_hooked = false;
    cupti_buffer_after_fork();
    cupti_callback_after_fork();
    cupti_clock_after_fork();
    cupti_hooks_after_fork();
    cupti_intern_after_fork();
    cupti_marker_after_fork();
    cupti_object_after_fork();
}

static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

static CUptiResult hook(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct cupti_driver *driver = cupti_driver();

    if (!driver)
        return CUPTI_ERROR_NOT_SUPPORTED;
    pthread_once(&once, watch_fork);
    switch (driver->profiler->begin(&cupti_hooks)) {
    case CUDA_SUCCESS:
        is_hooked = true;
        return CUPTI_SUCCESS;
    case CUDA_ERROR_NOT_PERMITTED:
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    default:
        return CUPTI_ERROR_NOT_SUPPORTED;
    }
}

static void unhook(void)
{
    cupti_driver()->profiler->end();
    cupti_hooks_finish();
    is_hooked = false;
}

static void collect(bool ask)
{
    if (!is_hooked)
        return;
    cupti_driver()->profiler->collect(ask);
    cupti_hooks_finish();
}

void cupti_collect(bool ask)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&state_lock);

    collect(ask);
}

static CUptiResult kind_on(uint32_t kind)
{
    CUptiResult result = is_hooked ? CUPTI_SUCCESS : hook();

    if (result == CUPTI_SUCCESS && !cupti_kind_is_on(kind))
        cupti_object_forget(kind);
    if (result == CUPTI_SUCCESS)
        atomic_store_explicit(&kinds_on[kind], true, memory_order_relaxed);
    return result;
}

static bool is_last(uint32_t kind)
{
    for (uint32_t other = 0; other < CUPTI_KINDS; other++)
        if (other != kind && cupti_kind_is_on(other))
            return false;
    return !wants_callbacks;
}

static void kind_off(uint32_t kind)
{
    if (!cupti_kind_is_on(kind))
        return;
    if (is_last(kind))
        unhook();
    else
        collect(true);
    atomic_store_explicit(&kinds_on[kind], false, memory_order_relaxed);
}

CUptiResult cupti_kind_switch(uint32_t kind, bool on)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&state_lock);

    if (!cupti_record_size(kind))
        return CUPTI_ERROR_INVALID_KIND;
    if (on)
        return kind_on(kind);
    kind_off(kind);
    return CUPTI_SUCCESS;
}

void cupti_kinds_off(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&state_lock);

    for (uint32_t kind = 0; kind < CUPTI_KINDS; kind++)
        kind_off(kind);
    forget_switches();
}

CUptiResult cupti_callbacks_switch(bool on)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&state_lock);
    CUptiResult result = on && !is_hooked ? hook() : CUPTI_SUCCESS;

    if (result != CUPTI_SUCCESS)
        return result;
    wants_callbacks = on;
    if (is_hooked && !wants_hooks())
        unhook();
    return CUPTI_SUCCESS;
}
